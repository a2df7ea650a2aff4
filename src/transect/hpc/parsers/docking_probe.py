"""Logs of transect's docking kernel (`transect.hpc.probes.docking`): read and recounted."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run, RunStatus, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_HEAD = re.compile(r"transect probe docking (\d{1,6})$")
_END = "end of transect probe"
_SAMPLE = re.compile(rf"sample (kernel|warm-up) \d{{1,9}} ({NUMBER})$")
_RESULT = re.compile(
    rf"result ([a-z][\w\-]{{0,20}}) best ({NUMBER}) (s|FLOP/s|1/s) median ({NUMBER}) \S{{1,12}} "
    r"runs (\d{1,9})$"
)
_VERIFY = re.compile(rf"verify energies difference ({NUMBER}) tolerance ({NUMBER}) (passed|FAILED)$")
_FACT = re.compile(r"([a-z_]{2,20}): (.{1,500})$")
_FORMAT = 1
# Ends without a result, by the first word of the status.
_ENDS = {"lacks": RunStatus.NO_RESULT, "died": RunStatus.FAILED, "refused": RunStatus.INVALID}
_AGREE = 1e-4  # samples have nine decimals, results seven digits
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


@dataclass(slots=True)
class _State:
    line: int
    format: int
    facts: dict[str, str] = field(default_factory=dict)
    samples: list[float] = field(default_factory=list)
    warm_ups: list[float] = field(default_factory=list)
    results: dict[str, tuple[str, str, str, int]] = field(default_factory=dict)
    verdict: str = ""
    ended: bool = False


def _read(state: _State, text: str) -> None:
    if (match := _SAMPLE.match(text)) is not None:
        if (value := number(match[2])) is not None:
            (state.samples if match[1] == "kernel" else state.warm_ups).append(value)
    elif (match := _RESULT.match(text)) is not None:
        state.results[match[1]] = (match[2], match[4], match[3], int(match[5]))
    elif (match := _VERIFY.match(text)) is not None:
        within = (number(match[1]) or 0.0) <= (number(match[2]) or 0.0)
        state.verdict = "passed" if match[3] == "passed" and within else "FAILED"
    elif text.startswith(_END):
        state.ended = True
    elif (match := _FACT.match(text)) is not None:
        state.facts.setdefault(match[1], match[2])


def _whole(state: _State, name: str) -> int | None:
    text = state.facts.get(name, "")
    return int(text) if re.fullmatch(r"[1-9]\d{0,11}", text) else None


def _work(state: _State, label: str) -> float | None:
    """Operations of one run, counted as miniBUDE 2 does, or pairs; the share of a run that a time is.

    None when not known.
    """
    if label == "kernel-time":
        return 1.0
    names = ("poses", "ligand_atoms", "protein_atoms", "poses_per_item")
    poses, ligand, protein, items = (_whole(state, name) for name in names)
    if poses is None or ligand is None or protein is None or items is None:
        return None
    if label in ("pose-time", "interactions"):
        return 1 / poses if label == "pose-time" else float(poses * ligand * protein)
    items = 1 if label == "kernel-ppwi1" else items
    atom = 2 + 18 * items + protein * (10 + 30 * items)
    return (27 * items + ligand * atom + items) * poses / items


def _recount(state: _State, label: str) -> str | None:
    """Compare the printed numbers with the samples, by the counting rule of the probe."""
    best, median, unit, runs = state.results[label]
    if len(state.samples) != runs:
        return f"{label}: {runs} runs are stated, {len(state.samples)} samples are in the log"
    if not state.samples or min(state.samples) <= 0:
        return f"{label}: a sample of {min(state.samples, default=0)} s"
    work = _work(state, label)
    if work is None:
        return f"{label}: its work is not known"
    for which, printed, seconds in (
        ("best", best, min(state.samples)),
        ("median", median, statistics.median(state.samples)),
    ):
        stated = number(printed)
        expected = work * seconds if unit == "s" else work / seconds
        if stated is None or not math.isclose(stated, expected, rel_tol=_AGREE + 1e-9 / seconds):
            return f"{label}: {which} is {printed} {unit}, but the samples give {expected:.6e} {unit}"
    return None


def _judge(draft: Draft, state: _State) -> None:
    if not state.ended:
        if draft.stop:
            draft.settle(RunStatus.FAILED, draft.stop)
        draft.lacks("no last line of the probe")
    if state.format != _FORMAT:
        draft.refuse(f"format {state.format} of the probe's log is not known, only {_FORMAT}")
    said = state.facts.get("status", "missing")
    for word, status in _ENDS.items():
        if said.startswith(f"{word}: "):
            draft.settle(status, excerpt(said.removeprefix(f"{word}: ")))
    if state.verdict == "FAILED" or said != "ok":
        reason = said.removeprefix("invalid: ") if said != "ok" else "the energies are wrong"
        draft.refuse(excerpt(reason))
    if not _ALWAYS <= set(state.results) <= set(_REGISTERED) or not state.verdict:
        draft.empty("the log lacks a result or its verification")
    draft.refuse_impossible()
    for label in state.results:
        if draft.ok:
            draft.refuse(_recount(state, label))


def _close(block: Block, state: _State) -> Run:
    draft = Draft(
        block=block,
        line=state.line,
        version=str(state.format),
        variant=state.facts.get("implementation", ""),
        parameters={
            key: int(value) if re.fullmatch(r"\d{1,18}", value) else value
            for key, value in state.facts.items()
            if key not in ("note", "status")
        },
        samples={
            name: Series(unit="s", values=values)
            for name, values in (("kernel", state.samples), ("warm-up", state.warm_ups))
            if values
        },
    )
    for label, (best, median, unit, _) in state.results.items():
        if (label in ("kernel-time", "pose-time")) == (unit == "s"):
            way = Direction.LOWER if unit == "s" else Direction.HIGHER
            for which, printed in (("best", best), ("median", median)):
                draft.reading(f"{label}_{which}", printed, unit, way, phase=label, registered=_REGISTERED.get(label))
    if state.warm_ups:
        # The first run is the one that compiles, where a model compiles when it is called.
        draft.reading(
            "warm-up_first",
            f"{state.warm_ups[0]:.9f}",
            "s",
            Direction.LOWER,
            phase="warm-up",
            registered="warm_up_time",
        )
    _judge(draft, state)
    return draft.run()


def _usable(line: Line, text: str) -> bool:
    return not line.cut or text.startswith(_END)


@PARSERS.register("docking-probe")
class DockingProbe(Parser):
    """Reads logs of `transect.hpc.probes.docking`."""

    benchmark = "docking-probe"
    description = "transect's own molecular-docking energy kernel, after miniBUDE"
    proof = Proof(
        identity="its first line, which names the probe and the format",
        success="its last line, `status: ok`, energies within tolerance; every printed number is recounted from the samples",
        failure="`FAILED` energies, another status, a number that the samples do not give",
    )
    starts = (r"transect probe docking \d",)
    wants = (*searched(_SAMPLE, _RESULT, _VERIFY, _FACT), r"(?:end of )?transect probe")

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run per log of the probe."""
        state: _State | None = None
        for line in block:
            text = line.text.strip()
            if (match := _HEAD.match(text)) is not None:
                if state is not None:
                    yield _close(block, state)
                state = _State(line.number, int(match[1]))
            elif state is not None and _usable(line, text):
                _read(state, text)
                if state.ended:
                    yield _close(block, state)
                    return
        yield _close(block, state or _State(block.first.number, _FORMAT))
