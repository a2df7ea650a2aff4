"""Real logs of other people against what a person read in them. Skipped where they are not."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from transect.hpc.base import Run
from transect.hpc.ingest import ingest

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("TRANSECT_CORPUS") or ROOT.parent / "shared" / "data" / "hpc-logs")
DIGITS = (("time", 2), ("gflops", 0))
KNOWN = ("HPL", "STREAM", "HPCC")

pytestmark = pytest.mark.skipif(not (CORPUS / "INDEX.csv").is_file(), reason=f"no logs in {CORPUS}")


def index() -> list[dict[str, str]]:
    if not (CORPUS / "INDEX.csv").is_file():
        return []
    with (CORPUS / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def truth_of(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)


def close(run: Run | None, name: str, expected: str, factor: float = 1.0) -> bool:
    found = run.metric(name) if run else None
    return found is not None and abs(found.value * factor - float(expected)) <= 6e-4 * abs(
        float(expected)
    )


def hpl_misses(truth: dict[str, str], text: str, runs: list[Run]) -> list[str]:
    done = [r for r in runs if r.metrics]
    if truth.get("result", "").startswith("NONE"):
        return (
            []
            if not done and runs[0].status in ("truncated", "failed")
            else ["a result was made up"]
        )
    rows = re.findall(r"\((\d+),([\d.]+),(\d+)\)", text)  # the sweep: (NB,time,gflops)
    if rows:
        found = [
            (r.parameters["NB"], r.metric("time").printed, r.metric("gflops").value) for r in done
        ]  # type: ignore[union-attr]
        return [] if found == [(int(a), b, float(c)) for a, b, c in rows] else [f"sweep: {found}"]
    several = re.findall(r"time_s=([\d.]+),gflops=(\d+)", text)
    if several:
        found2 = [tuple(f"{r.metric(key).value:.{d}f}" for key, d in DIGITS) for r in done]
        failed = [r for r in runs if r.status == "failed" and "too large" in r.reason]
        return (
            []
            if found2 == several and len(failed) == 1
            else [f"results: {found2}, failed: {len(failed)}"]
        )
    if len(runs) != 1:
        return [f"{len(runs)} runs instead of one"]
    run, misses = runs[0], []
    for key, name in (("gflops", "gflops"), ("time_s", "time"), ("residual", "residual")):
        if key in truth and not close(run, name, truth[key]):
            misses.append(f"{key}: {run.metric(name)} instead of {truth[key]}")
    for key in ("N", "NB", "P", "Q", "tv"):
        if key in truth and str(run.parameters.get(key)) != truth[key]:
            misses.append(f"{key}: {run.parameters.get(key)} instead of {truth[key]}")
    if run.status != ("ok" if truth.get("residual_pass", "").startswith("true") else "invalid"):
        misses.append(f"status {run.status}: {run.reason}")
    version = truth.get("version", truth.get("impl", "")).removeprefix("HPL-NVIDIA ").split(" ")[0]
    return (
        misses
        if run.version == version
        else [*misses, f"version {run.version} instead of {version}"]
    )


def stream_misses(truth: dict[str, str], text: str, runs: list[Run]) -> list[str]:
    if len(runs) != 1:
        return [f"{len(runs)} runs instead of one"]
    run, misses = runs[0], []
    for kernel in ("copy", "scale", "add", "triad"):
        expected = truth.get(f"{kernel}_MBs") or truth.get(kernel)
        found = run.metric(kernel)
        if expected and (found is None or found.printed != expected):
            misses.append(f"{kernel}: {found} instead of {expected}")
        if found is not None and found.unit != truth.get("unit", "MB/s"):
            misses.append(f"{kernel}: {found.unit}")
    expected_status = "invalid" if truth.get("valid", "true").startswith("false") else "ok"
    if run.status != expected_status:
        misses.append(f"status {run.status} instead of {expected_status}: {run.reason}")
    if "threads" in truth and str(run.parameters.get("threads_requested")) != truth["threads"]:
        misses.append(f"threads {run.parameters.get('threads_requested')}")
    if "version" in truth and run.version != truth["version"].removeprefix("NVIDIA-STREAM "):
        misses.append(f"version {run.version}")
    return misses


def hpcc_misses(truth: dict[str, str], text: str, runs: list[Run]) -> list[str]:
    if truth.get("result") == "NONE":
        wanted = 3 if "3 runs appended" in text else 1
        statuses = [r.status.value for r in runs]
        return [] if statuses == ["truncated"] * wanted else [f"statuses {statuses}"]
    run, misses = runs[0], []
    keys = {
        "HPL_Tflops": "HPL_Tflops",
        "HPL_time_s": "HPL_time", "StarDGEMM_Gflops": "StarDGEMM_Gflops",
        "PTRANS_GBs": "PTRANS_GBs", "MPIRandomAccess_GUPs": "MPIRandomAccess_GUPs",
        "StarSTREAM_Triad": "StarSTREAM_Triad", "MPIFFT_Gflops": "MPIFFT_Gflops",
        "RandomlyOrderedRingBandwidth_GBytes": "RandomlyOrderedRingBandwidth_GBytes",
    }  # fmt: skip
    for key, name in keys.items():
        expected = truth.get(key, "").split("(")[0]
        found = run.metric(name)
        if expected and (found is None or found.printed != expected):
            misses.append(f"{key}: {found} instead of {expected}")
    for key, name in (
        ("procs", "CommWorldProcs"),
        ("HPL_N", "HPL_N"),
        ("NB", "HPL_NB"),
        ("Success", "Success"),
    ):
        if key in truth and str(run.parameters.get(name)) != truth[key]:
            misses.append(f"{key}: {run.parameters.get(name)} instead of {truth[key]}")
    if run.status != ("ok" if truth["Success"] == "1" else "invalid"):
        misses.append(f"status {run.status}: {run.reason}")
    if not run.version.startswith(truth["version"]):
        misses.append(f"version {run.version}")
    if "trap" in truth and [r.status.value for r in runs[1:]] != ["truncated"]:
        misses.append(f"the second run: {runs[1:]}")
    return misses


CHECKS = {"HPL": hpl_misses, "STREAM": stream_misses, "HPCC": hpcc_misses}


@pytest.mark.parametrize("benchmark", KNOWN)
def test_what_a_person_read_is_found(benchmark: str) -> None:
    rows = [row for row in index() if row["benchmark"] == benchmark]
    misses = []
    for row in rows:
        runs = ingest([CORPUS / row["path"]])
        wrong = [f"seen as {run.benchmark}" for run in runs if run.benchmark != benchmark.lower()]
        wrong += CHECKS[benchmark](truth_of(row["hand_read_truth"]), row["hand_read_truth"], runs)
        misses += [f"{row['path']}: {one}" for one in wrong]
    print(f"{benchmark}: {len(rows)} files, {len(misses)} misses")
    assert rows and not misses, "\n".join(misses)


def test_no_other_log_is_taken_for_one_of_these_and_every_file_is_reported() -> None:
    paths = [row["path"] for row in index() if row["benchmark"] not in KNOWN]
    taken = []
    for path in paths:
        runs = ingest([CORPUS / path])
        assert runs
        taken += [
            f"{path}: {r.benchmark} {r.status}"
            for r in runs
            if r.benchmark in ("hpl", "stream", "hpcc")
        ]
        assert not [r.reason for r in runs if "fault of the parser" in r.reason]
    assert not taken, "\n".join(taken)
