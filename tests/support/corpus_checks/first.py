"""What a person read in logs of HPL, STREAM and HPCC, against what the parsers found."""

from __future__ import annotations

import re

from corpus_facts import Check, Facts, Truth, parameters, printed, same, status, values
from transect.hpc.base import Run


def _result(run: Run, time_digits: int, rate_digits: int) -> tuple[str, str]:
    time, rate = run.metric("time"), run.metric("gflops")
    assert time is not None and rate is not None
    return f"{time.value:.{time_digits}f}", f"{rate.value:.{rate_digits}f}"


def _hpl(truth: Truth, text: str, runs: list[Run]) -> Facts:
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
    facts += values(run, truth, "gflops time_s=time residual", lambda metric, stated: same(metric, stated, 6e-4))
    facts += parameters(run, truth, "N NB P Q tv")
    passed = truth.get("residual_pass", "").startswith("true")
    version = truth.get("version", truth.get("impl", "")).removeprefix("HPL-NVIDIA ").split(" ")[0]
    facts.append(("value version", run.version == version))
    return facts + status(runs, "ok" if passed else "invalid")


def _stream(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    gpus = int(truth.get("gpus", "1").split("(")[0])
    facts = [("one run", len(runs) == gpus)]
    for key, stated in truth.items():
        if (named := re.fullmatch(r"gpu(\d)_best_(\w+)", key)) is not None:
            metric = next((r.metric(named[2]) for r in runs if r.parameters.get("gpu") == int(named[1])), None)
            facts.append((f"value {key}", printed(metric, stated)))
    for kernel in ("copy", "scale", "add", "triad", "read", "write"):
        expected = truth.get(f"{kernel}_MBs") or truth.get(kernel)
        found = run.metric(kernel)
        if expected:
            unit = truth.get("unit", "MB/s")
            right = found is not None and (found.printed, found.unit) == (expected, unit)
            facts.append((f"value {kernel}", right))
    facts += status(runs[:1], "invalid" if truth.get("valid", "true").startswith("false") else "ok")
    facts += parameters(run, truth, "threads=threads_requested")
    if "version" in truth:
        version = truth["version"].removeprefix("NVIDIA-STREAM ")
        facts.append(("value version", run.version == version))
    return facts


def _hpcc(truth: Truth, text: str, runs: list[Run]) -> Facts:
    if truth.get("result") == "NONE":
        wanted = 3 if "3 runs appended" in text else 1
        return [("status", [run.status.value for run in runs] == ["truncated"] * wanted)]
    run = runs[0]
    names = (
        "HPL_time_s=HPL_time HPL_Tflops StarDGEMM_Gflops PTRANS_GBs MPIRandomAccess_GUPs StarSTREAM_Triad "
        "MPIFFT_Gflops RandomlyOrderedRingBandwidth_GBytes"
    )
    facts = values(run, truth, names, printed)
    facts += parameters(run, truth, "procs=CommWorldProcs HPL_N NB=HPL_NB Success")
    facts.append(("status", run.status == ("ok" if truth["Success"] == "1" else "invalid")))
    facts.append(("value version", run.version.startswith(truth["version"])))
    if "trap" in truth:
        statuses = [later.status.value for later in runs[1:]]
        facts.append(("status of the second run", statuses == ["truncated"]))
    return facts


CHECKS: dict[str, Check] = {"HPL": _hpl, "STREAM": _stream, "HPCC": _hpcc}
