"""What a person read in real logs of the compute benchmarks, against what the parsers found."""

from __future__ import annotations

import re
from collections.abc import Callable

from transect.hpc.base import Run, RunStatus

Facts = list[tuple[str, bool]]


def _near(run: Run | None, name: str, expected: str, relative: float = 1e-9) -> bool:
    found = run.metric(name) if run is not None else None
    if found is None:
        return False
    wanted = float(expected)
    return abs(found.value - wanted) <= relative * abs(wanted)


def _number(text: str) -> str:
    found = re.match(r"-?[\d.]+(?:[eE][-+]?\d+)?", text)
    return found[0] if found else "nan"


def _recognised(runs: list[Run], benchmark: str, count: int = 1) -> tuple[str, bool]:
    return "recognised", len(runs) == count and {r.benchmark for r in runs} == {benchmark}


def _hpl_mxp(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts: Facts = [_recognised(runs, "hpl-mxp")]
    if truth.get("result") == "NONE":
        said = re.findall(r"out of memory|Killed|not in range|exit code 105", text)
        failed = run.status == RunStatus.FAILED and said[0] in run.reason
        return [*facts, ("status", failed), ("value none", not run.metrics)]
    facts += [
        (f"value {key}", _near(run, name, _number(truth[key]), 1e-4))
        for key, name in (
            ("gflops", "gflops"),
            ("gflops_per_gpu", "gflops_per_gpu"),
            ("lu_gflops", "lu_gflops"),
            ("residual", "residual"),
        )
    ]
    facts += [(f"value {key}", str(run.parameters.get(key)) == truth[key]) for key in ("N", "NB", "P", "Q")]
    facts.append(("value version", run.version == truth["version"]))
    if "sloppy_type" in truth:
        said = str(run.parameters.get("SLOPPY-TYPE"))
        facts.append(("value sloppy_type", said in truth["sloppy_type"]))
        facts.append(("value precision", str(run.parameters.get("precision")) == "FP16"))
    passed = truth["residual_pass"] == "true"
    facts.append(("status", run.status == (RunStatus.OK if passed else RunStatus.INVALID)))
    return facts


def _hpcg(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts: Facts = [_recognised(runs, "hpcg")]
    for key, name in (
        ("gflops", "gflops"),
        ("raw_total_gflops", "raw_total_gflops"),
        ("with_convergence_overhead", "with_convergence_overhead_gflops"),
        ("hpcg24_rating", "hpcg24_rating"),
        ("exec_time_s", "time"),
    ):
        if key in truth:
            facts.append((f"value {key}", _near(run, name, _number(truth[key]))))
    for key, name in (
        ("nprocs", "ranks"),
        ("threads", "threads"),
        ("nx", "Global nx"),
        ("ny", "Global ny"),
        ("nz", "Global nz"),
        ("local_nx", "nx"),
    ):
        if key in truth:
            facts.append((f"value {key}", str(run.parameters.get(name)) == truth[key]))
    if truth["version"] == "NVIDIA CUDA 2017":  # a person's words: the log prints no version
        facts.append(("value version", (run.variant, run.version) == ("nvidia", "")))
    else:
        facts.append(("value version", run.version == truth["version"].split("(")[0]))
    for key, name in (("total_gflops", "raw_total_gflops"), ("final_gflops", "gflops"), ("total_time_s", "time")):
        if key in truth:
            facts.append((f"value {key}", _near(run, name, truth[key])))
    if "impl" in truth:
        facts.append(("value impl", run.parameters.get("build") == truth["impl"]))
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


def _babelstream(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    if truth.get("result") == "NONE":
        reason = re.sub(r".*\((.*)\)", r"\1", truth["status"])
        return [
            _recognised(runs, "babelstream"),
            ("status", runs[0].status == RunStatus.FAILED and reason in runs[0].reason),
            ("value none", not runs[0].metrics),
        ]
    count = int(truth.get("results", "1"))
    run = runs[0]
    facts: Facts = [_recognised(runs, "babelstream", count)]
    unit = truth.get("unit", "GB/s" if "triad_GBs" in truth else "MB/s")
    for kernel in ("copy", "mul", "add", "triad", "dot"):
        said = next((truth[k] for k in (kernel, f"{kernel}_MBs", f"{kernel}_GBs") if k in truth), None)
        if said == "NONE":
            facts.append((f"value {kernel}", all(r.metric(kernel) is None for r in runs)))
        elif said is not None:
            found = [r.metric(kernel) for r in runs]
            printed = [one.printed if one else "" for one in found]
            right = printed == said.split(",") and all(one and one.unit == unit for one in found)
            facts.append((f"value {kernel}", right))
    parameters = (
        ("precision", "precision"),
        ("n", "number_of_elements"),
        ("n_elements", "n_elements"),
        ("reps", "num_times"),
        ("num_times", "num_times"),
        ("sizeof", "sizeof"),
        ("name", "program"),
    )
    facts += [(f"value {key}", str(run.parameters.get(name)) == truth[key]) for key, name in parameters if key in truth]
    if "version" in truth:
        facts.append(("value version", run.version == truth["version"].split("(")[0]))
    if "impl" in truth and not truth["impl"].startswith("Mojo"):
        facts.append(("value impl", run.variant == truth["impl"]))
    facts.append(("status", all(r.status == RunStatus.OK for r in runs)))
    return facts


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


def _minibude(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    rows = re.findall(r"\((\d+),([\d.]+),([\d.]+)\)", text)
    if rows:
        found = [(str(r.parameters["ppwi"]), r.metric("average_time"), r.metric("gflops")) for r in runs]
        facts = [_recognised(runs, "minibude", len(rows))]
        for (ppwi, mean, rate), (n, one, two) in zip(rows, found, strict=False):
            right = one is not None and two is not None and (one.printed, two.printed) == (mean, rate)
            facts.append((f"value ppwi {ppwi}", n == ppwi and right))
        best = max(runs, key=lambda r: m.value if (m := r.metric("gflops")) else 0.0)
        facts.append(("value best_ppwi", str(best.parameters["ppwi"]) == truth["best_ppwi"]))
        return [*facts, ("status", all(r.status == RunStatus.OK for r in runs))]
    if "results" in truth:
        return _several_budes(text, runs)
    run = runs[0]
    if "rows" in truth:
        return _collected_budes(truth, runs)
    facts = [_recognised(runs, "minibude")]
    for key, name in _BUDE.items():
        if key in truth:
            found_one = run.metric(name)
            said = _number(truth[key])
            digits = len(said.partition(".")[2])
            printed = f"{found_one.value:.{digits}f}" if found_one is not None else ""
            facts.append((f"value {key}", float(printed or "nan") == float(said)))
    for key in ("poses", "iterations", "model"):
        if key in truth:
            said = truth[key].split("(")[0]
            facts.append((f"value {key}", str(run.parameters.get(key)) == said))
    wanted = RunStatus.INVALID if "invalid" in text else RunStatus.OK
    return [*facts, ("status", run.status == wanted)]


def _collected_budes(truth: dict[str, str], runs: list[Run]) -> Facts:
    """A table of several implementations: the best row of each as a person found it."""
    facts = [_recognised(runs, "minibude", int(truth["rows"]))]
    for key, said in truth.items():
        if not key.startswith("best "):
            continue
        wanted = dict(pair.split("=") for pair in f"ppwi={said}".split(","))
        found = [
            run
            for run in runs
            if str(run.parameters.get("ppwi")) == wanted["ppwi"]
            and str(run.parameters.get("wgsize")) == wanted["wgsize"]
            and (rate := run.metric("gflops")) is not None
            and f"{rate.value:.3f}" == f"{float(wanted['gflops']):.3f}"
        ]
        facts.append((f"value {key}", len(found) == 1))
    return [*facts, ("status", all(run.status == RunStatus.OK for run in runs))]


def _several_budes(text: str, runs: list[Run]) -> Facts:
    said = [part for part in text.split(";") if "avg_ms" in part]
    facts = [_recognised(runs, "minibude", len(said))]
    for number, (part, run) in enumerate(zip(said, runs, strict=False)):
        pairs = re.findall(r"(\w+)=([\d.]+)", part)
        right = all(_near(run, _BUDE[key], value) for key, value in pairs)
        facts.append((f"value result {number}", right))
        # A person's doubt refutes nothing: believed, and named.
        doubted = "implausible" in part
        right = run.status == RunStatus.OK and bool(run.suspicions) == doubted
        facts.append((f"status {number}", right))
    return facts


def _deep500(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    wanted = re.findall(r"TrainingAccuracy=([\d.]+),TestAccuracy=([\d.]+)", text)
    facts = [_recognised(runs, "deep500", len(wanted))]
    for number, (pair, run) in enumerate(zip(wanted, runs, strict=False), 1):
        for name, said in zip(("TrainingAccuracy", "TestAccuracy"), pair, strict=True):
            found = run.metric(name)
            facts.append((f"value run{number} {name}", found is not None and found.printed == said))
    rates = [m.printed for r in runs for m in r.metrics if m.name == "training_rate"]
    facts.append(("value train_it_s", rates == truth["train_it_s"].split(",")))
    facts.append(("value epochs", all(str(r.parameters["epochs"]) == truth["epochs"] for r in runs)))
    return [*facts, ("status", all(r.status == RunStatus.OK for r in runs))]


CHECKS: dict[str, Callable[[dict[str, str], str, list[Run]], Facts]] = {
    "HPL-MxP": _hpl_mxp,
    "HPCG": _hpcg,
    "BabelStream": _babelstream,
    "miniBUDE": _minibude,
    "Deep500": _deep500,
}
