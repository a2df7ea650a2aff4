"""IO500: the summary of the C version, its result.txt, and the output of the bash version.

A run is one Run, its phases are metrics with `phase`. The score is recomputed from the phases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Normalised, Parser, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._io500 import (
    BANDWIDTH,
    METADATA,
    Outcome,
    Phase,
    Score,
    core,
    product_total,
    short_writes,
    wrong,
)
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, log_metric, number

_NAME = r"(?:ior|mdtest|mdworkbench|find|timestamp|mdreal)[\w\-]{0,40}"
_RESULT = re.compile(
    r"\[(RESULT|RESULT-invalid|[ ]{2,12})\][ \t]*(?:(?:BW|IOPS)(?:[ \t]+phase[ \t]+\d{1,2})?[ \t]+)?"
    rf"([A-Za-z][\w\-]{{0,60}})[ \t]+({NUMBER})[ \t]+"
    rf"([GM]i?B/s|k?IOPS|k?iops)[ \t]*:[ \t]*time[ \t]+({NUMBER})[ \t]+seconds(.*)"
)
_SCORE = re.compile(
    rf"\[(SCOREX?)[ ]?(-invalid)?\][ \t]+Bandwidth[ \t]+({NUMBER})[ \t]+([GM]i?B/s)[ \t]*:"
    rf"[ \t]*IOPS[ \t]+({NUMBER})[ \t]+(k?iops|kIOPS|IOPS)[ \t]*:[ \t]*TOTAL[ \t]+({NUMBER})(.*)"
)
# Built outside git it has no version to print.
_VERSION = re.compile(r"IO500 version[ \t]+(?:([^\s(]\S{0,79})[ \t]*)?(?:\((\w{1,20})\))?")
_SECTION = re.compile(rf"\[({_NAME}|run|SCOREX?)\]$")
_PAIR = re.compile(r"([\w\-]{1,40})[ \t]+=[ \t]*(.*)")
_PROCS = re.compile(r"procs\s*= ?(\d{1,10})$")
_INVALID = re.compile(r"(?:; )?ERROR[ \t]+(?:INVALID\b|Runtime of phase)")
_FATAL = re.compile(r"FATAL \(|Error: the benchmark returned|; ERROR|ERROR ")
_UNITS = {"kiops": "kIOPS", "IOPS": "1/s", "iops": "1/s"}
_RUN_FACTS = ("procs", "config-hash", "result-dir", "mode")
_MOST = 100  # phases; an IO500 run has about twenty


@PARSERS.register("io500")
class Io500(Parser):
    """Reads phases and scores. What ior and mdtest print inside belongs to the phases."""

    benchmark = "io500"
    description = "IO500: bandwidth and metadata scores of a file system, C and bash versions"
    proof = Proof(
        identity="`IO500 version`, lines `[RESULT]` and `[SCORE]`, the keys of result.txt, `[Starting] ior_easy_write`",
        success="a whole `[SCORE]`, `[SCOREX]` too in extended mode; it is the geometric mean of the phases (in 2017 the product); a write phase below 300 s is `suspicious`",
        failure="`-invalid`, `ERROR INVALID`, a score that the phases refute",
    )
    programs = (r"io500(?:\.sh)?",)
    contains = frozenset(("ior", "mdtest"))
    starts = (
        r"IO500 version[ \t]+\S",
        r"\[RESULT(?:-invalid)?\][ \t]+(?:BW|IOPS)[ \t]",
        rf"\[RESULT(?:-invalid)?\][ \t]+{_NAME}[ \t]+\d",
        r"\[SCOREX?[ ]?(?:-invalid)?\][ \t]+Bandwidth[ \t]",
        r"version[ \t]+=[ \t]+io500-",
        r"config-hash[ \t]+=[ \t]+[0-9A-F]{1,8}(?=\s|\Z)",
        r"(?:throughput|rate)-stonewall[ \t]+=",
        r"\[Starting\] (?:ior|mdtest)_(?:easy|hard)_",
    )
    wants = (
        *searched(_RESULT, _SCORE, _VERSION, _SECTION, _INVALID, _FATAL),
        r"(?:version|procs|config-hash|result-dir|mode|score|t_delta|t_start|hash|MD|BW|SCORE"
        r"|found|total-files|throughput-stonewall|rate-stonewall|exe)[ \t]+=",
        r"; END",
        r"\[Starting\]",
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run for each score."""
        outcome = Outcome(line=block.first.number)
        if (match := _PROCS.match(block.last_words())) is not None:
            outcome.facts["procs"] = int(match[1])  # result.txt has it before the version
        for line in block:
            text = line.text.strip()
            if _begins_again(outcome, text):
                yield _run(block, outcome)
                outcome = Outcome(line=line.number)
            _read(outcome, line, text)
            if outcome.ended:
                yield _run(block, outcome)
                return
        yield _run(block, outcome)


def _begins_again(outcome: Outcome, text: str) -> bool:
    if _VERSION.match(text) or text == "[run]":
        return outcome.begun()
    if text.startswith("version "):
        return bool(outcome.phases or outcome.scores)
    if text.startswith("[Starting] ior_easy_write"):
        return bool(outcome.phases)
    begins = bool(_RESULT.match(text) or _SECTION.match(text))
    return begins and (len(outcome.phases) >= _MOST or ("SCORE" in outcome.scores and not text.startswith("[SC")))


def _read(outcome: Outcome, line: Line, text: str) -> None:
    if (match := _RESULT.match(text)) is not None:
        _read_result(outcome, match)
    elif (match := _SCORE.match(text)) is not None:
        _read_score(outcome, line, match)
    elif (match := _VERSION.match(text)) is not None:
        outcome.headed, outcome.form, outcome.version = True, "C summary", match[1] or ""
        if match[2]:
            outcome.facts["mode"] = match[2]
    elif (match := _SECTION.match(text)) is not None:
        outcome.section = match[1]
        outcome.form = outcome.form or "C result.txt"
    elif _INVALID.match(text):
        _read_mark(outcome, text)
    elif (match := _PAIR.match(text)) is not None:
        if not line.cut:
            outcome.form = outcome.form or "C result.txt"
            _read_pair(outcome, match[1], match[2].strip())
    elif text.startswith("; END"):
        outcome.ended = bool(outcome.scores)
    elif text.startswith("[Starting]"):
        outcome.headed, outcome.form = True, "bash"
    elif _FATAL.match(text) and len(outcome.errors) < 5:
        outcome.errors.append(excerpt(text))


def _read_result(outcome: Outcome, match: re.Match[str]) -> None:
    tag, name, value, unit, time_s, rest = match.groups()
    outcome.form = outcome.form or ("bash" if "_" in name or "phase" in match[0] else "C summary")
    phase = Phase(value=value, unit=_UNITS.get(unit, unit), time_s=time_s)
    phase.scored = tag.startswith("RESULT")
    if tag == "RESULT-invalid" or "[INVALID]" in rest:
        phase.invalid = "the log marks it as invalid"
        outcome.pending.clear()
    outcome.complain(*outcome.pending)
    outcome.pending.clear()
    before = outcome.phases.get(name)
    if before is not None and before.value and (before.value, before.time_s) != (value, time_s):
        outcome.conflicts.append(f"{name} is printed as {before.value} and as {value} {unit}")
        del outcome.conflicts[5:]
    if before is not None:
        phase.invalid = phase.invalid or before.invalid
    outcome.phases[name] = phase


def _read_score(outcome: Outcome, line: Line, match: re.Match[str]) -> None:
    name, mark, bandwidth, unit, metadata, _, total, rest = match.groups()
    if line.cut and len(total.partition(".")[2]) < len(metadata.partition(".")[2]):
        return
    invalid = bool(mark) or "[" in rest
    outcome.complain(*outcome.pending)
    outcome.pending.clear()
    outcome.form = outcome.form or "C summary"
    outcome.scores[name] = Score(bandwidth=bandwidth, metadata=metadata, total=total, unit=unit, invalid=invalid)
    if invalid and name == "SCORE":
        outcome.complain(excerpt(match[0]))
    outcome.ended = name == "SCOREX" or outcome.facts.get("mode") != "extended"


def _read_mark(outcome: Outcome, text: str) -> None:
    """Take a complaint of IO500: an optional phase does not spoil the official score."""
    name = core(outcome.section)
    official = name in BANDWIDTH or name in METADATA
    if outcome.form == "C result.txt" and name not in ("", "run", "SCORE") and not official:
        phase = outcome.phases.setdefault(outcome.section, Phase())
        phase.invalid = excerpt(text)
    elif outcome.form != "C result.txt":
        outcome.pending = [*outcome.pending[:3], excerpt(text)]
    else:
        outcome.complain(excerpt(text))


def _read_pair(outcome: Outcome, key: str, value: str) -> None:
    name = outcome.section
    if key == "version":
        outcome.headed, outcome.version = True, excerpt(value, 80)
    elif key in _RUN_FACTS and name in ("", "run"):
        outcome.facts[key] = int(value) if value.isdecimal() and len(value) < 12 else excerpt(value)
    elif name in ("SCORE", "SCOREX"):
        score = outcome.scores.setdefault(name, Score())
        if key == "hash":
            outcome.facts.setdefault("hash", excerpt(value))
            extended = outcome.facts.get("mode") == "extended"
            outcome.ended = score.whole() and (name == "SCOREX" or not extended)
            return
        first = value.split(" ", 1)[0].split("[", 1)[0]
        if key in ("MD", "BW", "SCORE"):
            kinds = {"MD": "metadata", "BW": "bandwidth", "SCORE": "total"}
            setattr(score, kinds[key], first)
        if "[INVALID]" in value:
            score.invalid = True
            if name == "SCORE":
                outcome.complain(excerpt(f"SCORE = {value}"))
    elif name and name != "run":
        phase = outcome.phases.setdefault(name, Phase())
        if key == "score":
            phase.value, phase.unit = value, "GiB/s" if name.startswith("ior") else "kIOPS"
        elif key == "t_delta":
            phase.time_s = value
        elif key != "exe" and len(phase.facts) < 8:
            phase.facts[key] = excerpt(value)


def _mislabelled(outcome: Outcome) -> bool:
    """Tell whether the score says GB/s over phases in GiB/s, whose mean it is."""
    score = outcome.scores.get("SCORE")
    units = {phase.unit for phase in outcome.phases.values()}
    return score is not None and score.unit == "GB/s" and "GiB/s" in units


def _metrics(outcome: Outcome) -> list[LogMetric]:
    readings: list[LogMetric | None] = []
    higher = Direction.HIGHER
    for name, score in outcome.scores.items():
        prefix = name.lower()
        # Only [SCORE] is what the list ranks.
        official = name == "SCORE"
        bandwidth = log_metric(f"{prefix}_bandwidth", score.bandwidth, score.unit, higher)
        if bandwidth is not None and official and score.unit in ("GB/s", "GiB/s"):
            binary = score.unit == "GiB/s" or _mislabelled(outcome)
            factor = 2.0**30 if binary else 1e9
            same = Normalised(name="storage_bandwidth", value=bandwidth.value * factor, unit="B/s")
            bandwidth = replace(bandwidth, normalised=same)
        registered = "metadata_rate" if official else None
        draft = score.unit.startswith("M")
        readings += [
            log_metric(prefix, score.total, "1", higher, registered="io500_score" if official and not draft else None),
            bandwidth,
            log_metric(
                f"{prefix}_metadata", score.metadata, "1/s" if draft else "kIOPS", higher, registered=registered
            ),
        ]
    for name, phase in outcome.phases.items():
        if not phase.value or (phase.scored is False and not number(phase.value)):
            continue
        bandwidth_phase = phase.unit.endswith("B/s")
        readings.append(
            log_metric(
                "bandwidth" if bandwidth_phase else "rate",
                phase.value,
                phase.unit,
                higher,
                registered="storage_bandwidth" if bandwidth_phase else "metadata_rate",
                phase=name,
            )
        )
        readings.append(log_metric("time", phase.time_s, "s", Direction.LOWER, phase=name))
    return [reading for reading in readings if reading is not None]


def _run(block: Block, outcome: Outcome) -> Run:
    draft = Draft(
        block=block,
        line=outcome.line,
        variant=outcome.form,
        version=outcome.version,
        parameters=dict(outcome.facts),
        metrics=_metrics(outcome),
        stops=[*outcome.errors[:2], block.take_trouble()],
    )
    _judge(draft, outcome)
    unscored = [name for name, phase in outcome.phases.items() if phase.scored is False]
    if unscored:
        draft.parameters["unscored"] = unscored
    warnings = [
        f"{name}, which does not count for [SCORE]: {phase.invalid}"
        for name, phase in outcome.phases.items()
        if phase.invalid and core(name) not in (*BANDWIDTH, *METADATA)
    ]
    if _mislabelled(outcome):
        warnings.append("the score says GB/s, but it is the mean of phases in GiB/s")
    if product_total(outcome):
        warnings.append("the total is the product of both scores, as in 2017, not its root")
        # No score of today's: it would lead every table.
        draft.metrics = [replace(m, normalised=None) if m.name == "score" else m for m in draft.metrics]
    if draft.ok:
        draft.suspicions += short_writes(outcome)
        warnings += outcome.errors
        if len(outcome.found((*BANDWIDTH, *METADATA))) < len(BANDWIDTH) + len(METADATA):
            warnings.append("not all phases are in the log: the score cannot be recomputed")
    draft.warnings = warnings[:20]
    return draft.run()


def _judge(draft: Draft, outcome: Outcome) -> None:
    extended = outcome.facts.get("mode") == "extended"
    score = outcome.scores.get("SCORE") or outcome.scores.get("SCOREX")
    if score is None or not score.whole():
        done = sum(1 for phase in outcome.phases.values() if phase.value)
        draft.ends(f"after {done} phases, before the score")
    elif extended and "SCOREX" not in outcome.scores:
        words = draft.block.last_words()
        draft.settle(RunStatus.TRUNCATED, f"ends before [SCOREX], with: {words}")
    if draft.ok:
        draft.refuse(wrong(outcome))
    draft.refuse_impossible()
