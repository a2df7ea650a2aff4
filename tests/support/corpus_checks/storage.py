"""IO500, IOR and mdtest: what a person read in real logs against what the parsers find."""

from __future__ import annotations

import re

from corpus_facts import Check, Facts, Truth, parameters, same, status, values
from transect.hpc.base import Run


def io500(truth: Truth, text: str, runs: list[Run]) -> Facts:
    facts: Facts = []
    run = runs[0]
    # [SCORE] BW=..;MD=..;SCORE=.. and the same after [SCOREX]
    for tag, name in (("SCORE", "score"), ("SCOREX", "scorex")):
        found = re.search(rf"\[{tag}\] BW=([\d.]+);MD=([\d.]+);SCORE=([\d.]+)", text)
        if found is not None:
            for metric, expected in zip((f"{name}_bandwidth", f"{name}_metadata", name), found.groups(), strict=True):
                facts.append((f"value {metric}", same(run.metric(metric), expected)))
    plain = (
        "bw_score=score_bandwidth iops_score_kiops=score_metadata total_score=score scorex_bw=scorex_bandwidth "
        "scorex_iops=scorex_metadata scorex_total=scorex"
    )
    facts += values(run, truth, plain)
    for key, expected in truth.items():
        if (found := re.fullmatch(r"([\w\-]+?)(?:_GiBs|_kiops|\.score)", key)) is None:
            continue
        if f"{key}=" in plain:
            continue
        phase = found[1].replace("_", "-")
        metric = "bandwidth" if phase.startswith("ior") else "rate"
        facts.append((f"value {key}", same(run.metric(metric, phase), expected)))
    for key, expected in truth.items():
        if key.endswith(".t_delta"):
            phase = key.removesuffix(".t_delta")
            facts.append((f"value {key}", same(run.metric("time", phase), expected)))
    if "unscored_phase" in truth:
        found = re.search(r"\] (\S+) ([\d.]+) GiB/s", truth["unscored_phase"])
        assert found is not None
        right = same(run.metric("bandwidth", found[1]), found[2])
        unscored = run.parameters.get("unscored")
        facts.append(("value unscored_phase", right and found[1] in (unscored or [])))  # type: ignore[operator]
    if "version" in truth:
        facts.append(("value version", run.version == truth["version"].split(" ")[0]))
    facts += parameters(run, truth, "mode procs hash")
    short = any(m.name == "time" and m.phase and m.phase.endswith("-write") and m.value < 300 for m in run.metrics)
    expected_status = "invalid" if "ERROR INVALID" in text else "ok"
    facts.append(("status", len(runs) == 1 and run.status == expected_status))
    if short and expected_status == "ok":
        facts.append(("status doubted", any("300 s of writing" in suspicion for suspicion in run.suspicions)))
    return facts


def ior(truth: Truth, text: str, runs: list[Run]) -> Facts:
    facts: Facts = []
    if "result" in truth:
        none = not any(run.metrics for run in runs)
        wanted = "failed" if "status=failed" in text else "no-result"
        return [("value result", none), *status(runs, wanted)]
    facts.append(("value version", {run.version for run in runs} == {truth["version"]}))
    facts += status(runs)
    if "runs" in truth:
        facts.append(("value runs", str(len(runs)) == truth["runs"].split("(")[0]))
        for operation in ("write", "read"):
            expected = truth[f"max_{operation}_MiBs"].split(",")
            found = [r.metric("bandwidth_max", operation) for r in runs]
            printed = [m.printed for m in found if m is not None]
            facts += [
                (f"value max_{operation}_MiBs {i}", i < len(printed) and printed[i] == wanted_text)
                for i, wanted_text in enumerate(expected)
            ]
        return facts
    run = runs[0]
    facts.append(("value one run", len(runs) == 1))
    for key, expected in truth.items():
        number = expected.split("(")[0]
        if found := re.fullmatch(r"(max|min|mean)_(write|read)_MiBs", key):
            right = same(run.metric(f"bandwidth_{found[1]}", found[2]), number)
        elif found := re.fullmatch(r"bw(Max|Mean)MIB_(write|read)", key):
            right = same(run.metric(f"bandwidth_{found[1].lower()}", found[2]), number)
        elif key == "total_s":
            mean = run.metric("time_mean")
            right = mean is not None and f"{mean.value:.2f}" == number
        elif key == "stonewall_s":
            right = run.parameters.get("stonewallingTime") == float(number)
        elif key in ("tasks", "api"):
            right = str(run.parameters.get(key)) == number
        elif key == "reps":
            right = str(run.parameters.get("repetitions")) == number == str(len(run.samples["write"].values))
        elif key == "warnings":
            right = any("aggregate file size" in warning for warning in run.warnings)
        else:
            continue
        facts.append((f"value {key}", right))
    return facts


_OPERATIONS = {
    "file_creation": "File creation",
    "file_stat": "File stat",
    "file_read": "File read",
    "file_removal": "File removal",
    "dir_creation": "Directory creation",
    "tree_creation": "Tree creation",
    "tree_removal": "Tree removal",
}


def mdtest(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [("value version", run.version == truth["version"]), ("status", len(runs) == 1 and run.status == "ok")]
    facts += parameters(run, truth, "tasks nodes iterations")
    for key, expected in truth.items():
        found = re.fullmatch(r"(\w+?)(?:_(max|mean))?", key)
        if found is not None and found[1] in _OPERATIONS:
            metric = run.metric(f"rate_{found[2] or 'max'}", _OPERATIONS[found[1]])
            facts.append((f"value {key}", same(metric, expected)))
    if "verbose_per_iteration" in truth:
        expected = truth["verbose_per_iteration"].split("(")[0]
        sample = run.samples["File stat"].values
        facts.append(("value verbose_per_iteration", sample == [float(expected)]))
    return facts


CHECKS: dict[str, Check] = {"IO500": io500, "IOR": ior, "mdtest": mdtest}
