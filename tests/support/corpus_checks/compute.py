"""What a person read in real logs of the compute benchmarks, against what the parsers found."""

from __future__ import annotations

import re

from corpus_facts import Check, Facts, Truth, number, parameters, printed, same, status, values
from transect.hpc.base import Run, RunStatus


def _recognised(runs: list[Run], count: int = 1) -> tuple[str, bool]:
    return "recognised", len(runs) == count


def _hpl_mxp(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts: Facts = [_recognised(runs)]
    if truth.get("result") == "NONE":
        words = re.findall(r"out of memory|Killed|not in range|exit code 105", text)
        failed = run.status == RunStatus.FAILED and words[0] in run.reason
        return [*facts, ("status", failed), ("value none", not run.metrics)]
    facts += values(run, truth, "gflops gflops_per_gpu lu_gflops residual", lambda m, stated: same(m, stated, 1e-4))
    facts += parameters(run, truth, "N NB P Q")
    facts.append(("value version", run.version == truth["version"]))
    if "sloppy_type" in truth:
        words = str(run.parameters.get("SLOPPY-TYPE"))
        facts.append(("value sloppy_type", words in truth["sloppy_type"]))
        facts.append(("value precision", str(run.parameters.get("precision")) == "FP16"))
    return facts + status(runs, "ok" if truth["residual_pass"] == "true" else "invalid")


def _hpcg(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts: Facts = [_recognised(runs)]
    facts += values(
        run,
        truth,
        "gflops raw_total_gflops with_convergence_overhead=with_convergence_overhead_gflops hpcg24_rating "
        "exec_time_s=time total_gflops=raw_total_gflops final_gflops=gflops total_time_s=time",
    )
    names = "nprocs=ranks threads nx=Global~nx ny=Global~ny nz=Global~nz local_nx=nx impl=build"
    facts += parameters(run, truth, names)
    if truth["version"] == "NVIDIA CUDA 2017":  # a person's words: the log prints no version
        facts.append(("value version", (run.variant, run.version) == ("nvidia", "")))
    else:
        facts.append(("value version", run.version == truth["version"].split("(")[0]))
    if "quickpath" in truth:
        facts.append(("value quickpath", any("QuickPath" in w for w in run.warnings)))
    if "official_time_ok" in truth:
        facts.append(("value official_time_ok", any("1800 s" in w for w in run.warnings)))
    valid = truth.get("valid", "unknown")
    right = run.status == ("invalid" if valid == "false" else RunStatus.OK)
    if not valid.startswith(("true", "false")):  # the log has no verdict: believed, and said so
        right = right and bool(run.suspicions)
    facts.append(("status", right))
    return facts


def _babelstream(truth: Truth, text: str, runs: list[Run]) -> Facts:
    if truth.get("result") == "NONE":
        reason = re.sub(r".*\((.*)\)", r"\1", truth["status"])
        return [
            _recognised(runs),
            ("status", runs[0].status == RunStatus.FAILED and reason in runs[0].reason),
            ("value none", not runs[0].metrics),
        ]
    count = int(truth.get("results", "1"))
    run = runs[0]
    facts: Facts = [_recognised(runs, count)]
    unit = truth.get("unit", "GB/s" if "triad_GBs" in truth else "MB/s")
    for kernel in ("copy", "mul", "add", "triad", "dot"):
        stated = next((truth[k] for k in (kernel, f"{kernel}_MBs", f"{kernel}_GBs") if k in truth), None)
        if stated == "NONE":
            facts.append((f"value {kernel}", all(r.metric(kernel) is None for r in runs)))
        elif stated is not None:
            found = [r.metric(kernel) for r in runs]
            printed = [metric.printed if metric else "" for metric in found]
            right = printed == stated.split(",") and all(metric and metric.unit == unit for metric in found)
            facts.append((f"value {kernel}", right))
    names = "precision n=number_of_elements n_elements reps=num_times num_times sizeof name=program"
    facts += parameters(run, truth, names)
    if "version" in truth:
        facts.append(("value version", run.version == truth["version"].split("(")[0]))
    if "impl" in truth and not truth["impl"].startswith("Mojo"):
        facts.append(("value impl", run.variant == truth["impl"]))
    return facts + status(runs)


_BUDE = {
    "total_ms": "total_time",
    "kernel_ms": "total_time",
    "sum_ms": "total_time",
    "avg_ms": "average_time",
    "min_ms": "minimum_time",
    "max_ms": "maximum_time",
    "ginteractions": "interactions",
    "gflops": "gflops",
    "gfinst": "gfinst",
}


def _minibude(truth: Truth, text: str, runs: list[Run]) -> Facts:
    rows = re.findall(r"\((\d+),([\d.]+),([\d.]+)\)", text)
    if rows:
        found = [(str(r.parameters["ppwi"]), r.metric("average_time"), r.metric("gflops")) for r in runs]
        facts = [_recognised(runs, len(rows))]
        for (ppwi, mean, rate), (n, time, speed) in zip(rows, found, strict=False):
            right = time is not None and speed is not None and (time.printed, speed.printed) == (mean, rate)
            facts.append((f"value ppwi {ppwi}", n == ppwi and right))
        best = max(runs, key=lambda r: m.value if (m := r.metric("gflops")) else 0.0)
        facts.append(("value best_ppwi", str(best.parameters["ppwi"]) == truth["best_ppwi"]))
        return facts + status(runs)
    if "results" in truth:
        return _several_budes(text, runs)
    run = runs[0]
    if "rows" in truth:
        return _collected_budes(truth, runs)
    facts = [_recognised(runs)]
    for key, name in _BUDE.items():
        if key in truth:
            found_one = run.metric(name)
            stated = number(truth[key])
            digits = len(stated.partition(".")[2])
            printed = f"{found_one.value:.{digits}f}" if found_one is not None else ""
            facts.append((f"value {key}", float(printed or "nan") == float(stated)))
    facts += parameters(run, truth, "poses iterations model")
    return facts + status(runs, "invalid" if "invalid" in text else "ok")


def _collected_budes(truth: Truth, runs: list[Run]) -> Facts:
    """A table of several implementations: the best row of each as a person found it."""
    facts = [_recognised(runs, int(truth["rows"]))]
    for key, stated in truth.items():
        if not key.startswith("best "):
            continue
        wanted = dict(pair.split("=") for pair in f"ppwi={stated}".split(","))
        found = [
            run
            for run in runs
            if str(run.parameters.get("ppwi")) == wanted["ppwi"]
            and str(run.parameters.get("wgsize")) == wanted["wgsize"]
            and (rate := run.metric("gflops")) is not None
            and f"{rate.value:.3f}" == f"{float(wanted['gflops']):.3f}"
        ]
        facts.append((f"value {key}", len(found) == 1))
    return facts + status(runs)


def _several_budes(text: str, runs: list[Run]) -> Facts:
    parts = [part for part in text.split(";") if "avg_ms" in part]
    facts = [_recognised(runs, len(parts))]
    for place, (part, run) in enumerate(zip(parts, runs, strict=False)):
        pairs = re.findall(r"(\w+)=([\d.]+)", part)
        right = all(same(run.metric(_BUDE[key]), value) for key, value in pairs)
        facts.append((f"value result {place}", right))
        # A person's doubt refutes nothing: believed, and named.
        doubted = "implausible" in part
        right = run.status == RunStatus.OK and bool(run.suspicions) == doubted
        facts.append((f"status {place}", right))
    return facts


def _deep500(truth: Truth, text: str, runs: list[Run]) -> Facts:
    wanted = re.findall(r"TrainingAccuracy=([\d.]+),TestAccuracy=([\d.]+)", text)
    facts = [_recognised(runs, len(wanted))]
    for place, (pair, run) in enumerate(zip(wanted, runs, strict=False), 1):
        for name, stated in zip(("TrainingAccuracy", "TestAccuracy"), pair, strict=True):
            facts.append((f"value run{place} {name}", printed(run.metric(name), stated)))
    rates = [m.printed for r in runs for m in r.metrics if m.name == "training_rate"]
    facts.append(("value train_it_s", rates == truth["train_it_s"].split(",")))
    facts.append(("value epochs", all(str(r.parameters["epochs"]) == truth["epochs"] for r in runs)))
    return facts + status(runs)


CHECKS: dict[str, Check] = {
    "HPL-MxP": _hpl_mxp,
    "HPCG": _hpcg,
    "BabelStream": _babelstream,
    "miniBUDE": _minibude,
    "Deep500": _deep500,
}
