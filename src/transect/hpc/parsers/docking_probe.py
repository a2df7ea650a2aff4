"""Logs of transect's docking kernel (`transect.hpc.probes.docking`): read and recounted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Proof, Run, RunStatus, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._probe import ProbeOutput
from transect.hpc.rules import OutputParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

# Ends without a result, by the first word of the status.
_ENDS = {"lacks": RunStatus.NO_RESULT, "died": RunStatus.FAILED, "refused": RunStatus.INVALID}
# Label of a result -> metric of the registry. The count for one pose per work-item is larger than
# what the kernel does: it stands beside, and becomes no bound.
_REGISTERED = {
    "kernel": "kernel_flops",
    "kernel-time": "benchmark_time",
    "kernel-ppwi1": None,
    "pose-time": "pose_time",
    "interactions": "interaction_rate",
}
# Logs from before there were the others have these.
_ALWAYS = {"kernel", "kernel-time", "kernel-ppwi1"}


@dataclass(kw_only=True)
class _Output(ProbeOutput):
    verdict: str = ""

    @rule(rf"verify energies difference ({NUMBER}) tolerance ({NUMBER}) (passed|FAILED)$")
    def verify(self, match: re.Match[str], line: Line) -> None:
        within = (number(match[1]) or 0.0) <= (number(match[2]) or 0.0)
        self.verdict = "passed" if match[3] == "passed" and within else "FAILED"

    def runs(self) -> Iterator[Run]:
        draft = self.draft(
            version=str(self.format),
            variant=self.fields.get("implementation", ""),
            parameters=self.parameters(),
            samples={
                name: Series(unit="s", values=self.samples[name])
                for name in ("kernel", "warm-up")
                if name in self.samples
            },
        )
        warm_ups = self.samples.get("warm-up")
        for label, (best, median, unit, _) in self.results.items():
            if (label in ("kernel-time", "pose-time")) == (unit == "s"):
                way = Direction.LOWER if unit == "s" else Direction.HIGHER
                for which, printed in (("best", best), ("median", median)):
                    draft.add_metric(
                        f"{label}_{which}", printed, unit, way, phase=label, registered=_REGISTERED.get(label)
                    )
        if warm_ups:
            # The first run is the one that compiles, where a model compiles when it is called.
            draft.add_metric("warm-up_first", f"{warm_ups[0]:.9f}", "s", phase="warm-up", registered="warm_up_time")
        _judge(draft, self)
        yield draft.run()


def _whole(output: _Output, name: str) -> int | None:
    text = output.fields.get(name, "")
    return int(text) if re.fullmatch(r"[1-9]\d{0,11}", text) else None


def _work(output: _Output, label: str) -> float | None:
    """Operations of one run, counted as miniBUDE 2 does, or pairs; the share of a run that a time is.

    None when not known.
    """
    if label == "kernel-time":
        return 1.0
    names = ("poses", "ligand_atoms", "protein_atoms", "poses_per_item")
    poses, ligand, protein, items = (_whole(output, name) for name in names)
    if poses is None or ligand is None or protein is None or items is None:
        return None
    if label in ("pose-time", "interactions"):
        return 1 / poses if label == "pose-time" else float(poses * ligand * protein)
    items = 1 if label == "kernel-ppwi1" else items
    atom = 2 + 18 * items + protein * (10 + 30 * items)
    return (27 * items + ligand * atom + items) * poses / items


def _judge(draft: Draft, output: _Output) -> None:
    output.judge_end(draft)
    printed_status = output.fields.get("status", "missing")
    for word, status in _ENDS.items():
        if printed_status.startswith(f"{word}: "):
            draft.set_status(status, excerpt(printed_status.removeprefix(f"{word}: ")))
    if output.verdict == "FAILED" or printed_status != "ok":
        reason = printed_status.removeprefix("invalid: ") if printed_status != "ok" else "the energies are wrong"
        draft.mark_invalid(excerpt(reason))
    if not _ALWAYS <= set(output.results) <= set(_REGISTERED) or not output.verdict:
        draft.mark_no_result("the log lacks a result or its verification")
    draft.mark_impossible()
    for label in output.results:
        if draft.ok:
            draft.mark_invalid(
                output.recount(
                    label,
                    output.samples.get("kernel", []),
                    _work(output, label),
                    of_time=output.results[label].unit == "s",
                )
            )


@PARSERS.register("docking-probe")
class DockingProbe(OutputParser):
    """Reads logs of `transect.hpc.probes.docking`."""

    benchmark = "docking-probe"
    description = "transect's own molecular-docking energy kernel, after miniBUDE"
    validity_notes = Proof(
        identity="its first line, which names the probe and the format",
        success="its last line, `status: ok`, energies within tolerance; every printed number is recounted from the samples",
        failure="`FAILED` energies, another status, a number that the samples do not give",
    )
    output = _Output
    start_patterns = (r"transect probe docking \d",)
