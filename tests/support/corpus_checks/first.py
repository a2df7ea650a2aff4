"""What a person read in logs of HPL, STREAM and HPCC, against what the parsers found."""

from __future__ import annotations

import re
from collections.abc import Callable

from transect.hpc.base import Run

Facts = list[tuple[str, bool]]


def _close(run: Run, name: str, expected: str, factor: float = 1.0) -> bool:
    found = run.metric(name)
    return found is not None and abs(found.value * factor - float(expected)) <= 6e-4 * abs(float(expected))


def _result(run: Run, time_digits: int, rate_digits: int) -> tuple[str, str]:
    time, rate = run.metric("time"), run.metric("gflops")
    assert time is not None and rate is not None
    return f"{time.value:.{time_digits}f}", f"{rate.value:.{rate_digits}f}"


def _hpl(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    done = [run for run in runs if run.metrics]
    if truth.get("result", "").startswith("NONE"):
        return [("value none is made up", not done), ("status", runs[0].status in ("truncated", "failed"))]
    rows = re.findall(r"\((\d+),([\d.]+),(\d+)\)", text)  # a sweep: (NB,time,gflops)
    if rows:
        found = [(str(run.parameters["NB"]), *_result(run, len(rows[0][1].partition(".")[2]), 0)) for run in done]
        return [(f"value {row}", i < len(found) and found[i] == row) for i, row in enumerate(rows)]
    several = re.findall(r"time_s=([\d.]+),gflops=(\d+)", text)
    if several:
        found2 = [_result(run, 2, 0) for run in done]
        failed = [run for run in runs if run.status == "failed" and "too large" in run.reason]
        facts = [(f"value {row}", i < len(found2) and found2[i] == row) for i, row in enumerate(several)]
        return [*facts, ("status", len(failed) == 1)]
    run = runs[0]
    facts = [("one run", len(runs) == 1)]
    for key, name in (("gflops", "gflops"), ("time_s", "time"), ("residual", "residual")):
        if key in truth:
            facts.append((f"value {key}", _close(run, name, truth[key])))
    for key in ("N", "NB", "P", "Q", "tv"):
        if key in truth:
            facts.append((f"value {key}", str(run.parameters.get(key)) == truth[key]))
    passed = truth.get("residual_pass", "").startswith("true")
    version = truth.get("version", truth.get("impl", "")).removeprefix("HPL-NVIDIA ").split(" ")[0]
    return [
        *facts,
        ("status", run.status == ("ok" if passed else "invalid")),
        ("value version", run.version == version),
    ]


def _stream(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    gpus = int(truth.get("gpus", "1").split("(")[0])
    facts = [("one run", len(runs) == gpus)]
    for key, said in truth.items():
        if (named := re.fullmatch(r"gpu(\d)_best_(\w+)", key)) is not None:
            one = next((r.metric(named[2]) for r in runs if r.parameters.get("gpu") == int(named[1])), None)
            facts.append((f"value {key}", one is not None and one.printed == said))
    for kernel in ("copy", "scale", "add", "triad", "read", "write"):
        expected = truth.get(f"{kernel}_MBs") or truth.get(kernel)
        found = run.metric(kernel)
        if expected:
            unit = truth.get("unit", "MB/s")
            right = found is not None and (found.printed, found.unit) == (expected, unit)
            facts.append((f"value {kernel}", right))
    wanted = "invalid" if truth.get("valid", "true").startswith("false") else "ok"
    facts.append(("status", run.status == wanted))
    if "threads" in truth:
        asked = str(run.parameters.get("threads_requested"))
        facts.append(("value threads", asked == truth["threads"]))
    if "version" in truth:
        version = truth["version"].removeprefix("NVIDIA-STREAM ")
        facts.append(("value version", run.version == version))
    return facts


_HPCC = (
    "HPL_Tflops",
    "StarDGEMM_Gflops",
    "PTRANS_GBs",
    "MPIRandomAccess_GUPs",
    "StarSTREAM_Triad",
    "MPIFFT_Gflops",
    "RandomlyOrderedRingBandwidth_GBytes",
)


def _hpcc(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    if truth.get("result") == "NONE":
        wanted = 3 if "3 runs appended" in text else 1
        return [("status", [run.status.value for run in runs] == ["truncated"] * wanted)]
    run, facts = runs[0], []
    for key, name in (("HPL_time_s", "HPL_time"), *((key, key) for key in _HPCC)):
        expected = truth.get(key, "").split("(")[0]
        found = run.metric(name)
        if expected:
            facts.append((f"value {key}", found is not None and found.printed == expected))
    for key, name in (("procs", "CommWorldProcs"), ("HPL_N", "HPL_N"), ("NB", "HPL_NB"), ("Success", "Success")):
        if key in truth:
            facts.append((f"value {key}", str(run.parameters.get(name)) == truth[key]))
    facts.append(("status", run.status == ("ok" if truth["Success"] == "1" else "invalid")))
    facts.append(("value version", run.version.startswith(truth["version"])))
    if "trap" in truth:
        rest = [one.status.value for one in runs[1:]]
        facts.append(("status of the second run", rest == ["truncated"]))
    return facts


CHECKS: dict[str, Callable[[dict[str, str], str, list[Run]], Facts]] = {"HPL": _hpl, "STREAM": _stream, "HPCC": _hpcc}
