"""IO500: the summary of the C version, its result.txt, and the output of the bash version.

A run is one Run, its phases are metrics with `phase`. The score is recomputed from the phases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from transect.hpc.base import PARSERS, Normalised, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._io500_score import (
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
from transect.hpc.rules import Output, OutputParser, keeps, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_NAME = r"(?:ior|mdtest|mdworkbench|find|timestamp|mdreal)[\w\-]{0,40}"
_RESULT = re.compile(
    r"\[(RESULT|RESULT-invalid|[ ]{2,12})\][ \t]*(?:(?:BW|IOPS)(?:[ \t]+phase[ \t]+\d{1,2})?[ \t]+)?"
    rf"([A-Za-z][\w\-]{{0,60}})[ \t]+({NUMBER})[ \t]+"
    rf"([GM]i?B/s|k?IOPS|k?iops)[ \t]*:[ \t]*time[ \t]+({NUMBER})[ \t]+seconds(.*)"
)
# Built outside git it has no version to print.
_VERSION = re.compile(r"IO500 version[ \t]+(?:([^\s(]\S{0,79})[ \t]*)?(?:\((\w{1,20})\))?")
_SECTION = re.compile(rf"\[({_NAME}|run|SCOREX?)\]$")
_PROCS = re.compile(r"procs\s*= ?(\d{1,10})$")
_UNITS = {"kiops": "kIOPS", "IOPS": "1/s", "iops": "1/s"}
_RUN_FACTS = ("procs", "config-hash", "result-dir", "mode")


@dataclass(kw_only=True)
class _Output(Outcome, Output):
    """What one run printed: the summary, result.txt or the output of the bash version."""

    def begins(self, text: str) -> bool:
        """Tell whether a line belongs to the next run, whose head may be lost."""
        if _VERSION.match(text) or text == "[run]":
            return bool(self.headed or self.phases or self.scores or self.facts)
        if text.startswith("version "):
            return bool(self.phases or self.scores)
        if text.startswith("[Starting] ior_easy_write"):
            return bool(self.phases)
        result = bool(_RESULT.match(text) or _SECTION.match(text))
        return result and "SCORE" in self.scores and not text.startswith("[SC")

    @rule(_RESULT)
    def result(self, match: re.Match[str], line: Line) -> None:
        tag, name, value, unit, time_s, remarks = match.groups()
        self.form = self.form or ("bash" if "_" in name or "phase" in match[0] else "C summary")
        phase = Phase(value=value, unit=_UNITS.get(unit, unit), time_s=time_s)
        phase.scored = tag.startswith("RESULT")
        if tag == "RESULT-invalid" or "[INVALID]" in remarks:
            phase.invalid = "the log marks it as invalid"
            self.pending.clear()
        self.complain(*self.pending)
        self.pending.clear()
        before = self.phases.get(name)
        if before is not None and before.value and (before.value, before.time_s) != (value, time_s):
            self.conflicts.append(f"{name} is printed as {before.value} and as {value} {unit}")
        if before is not None:
            phase.invalid = phase.invalid or before.invalid
        self.phases[name] = phase

    @rule(
        rf"\[(SCOREX?)[ ]?(-invalid)?\][ \t]+Bandwidth[ \t]+({NUMBER})[ \t]+([GM]i?B/s)[ \t]*:"
        rf"[ \t]*IOPS[ \t]+({NUMBER})[ \t]+(k?iops|kIOPS|IOPS)[ \t]*:[ \t]*TOTAL[ \t]+({NUMBER})(.*)"
    )
    def score(self, match: re.Match[str], line: Line) -> None:
        name, mark, bandwidth, unit, metadata, _, total, remarks = match.groups()
        invalid = bool(mark) or "[" in remarks
        self.complain(*self.pending)
        self.pending.clear()
        self.form = self.form or "C summary"
        self.scores[name] = Score(bandwidth=bandwidth, metadata=metadata, total=total, unit=unit, invalid=invalid)
        if invalid and name == "SCORE":
            self.complain(excerpt(match[0]))
        self.ended = name == "SCOREX" or self.facts.get("mode") != "extended"

    @rule(_VERSION)
    def head(self, match: re.Match[str], line: Line) -> None:
        self.headed, self.form, self.version = True, "C summary", match[1] or ""
        if match[2]:
            self.facts["mode"] = match[2]

    @rule(_SECTION)
    def section_line(self, match: re.Match[str], line: Line) -> None:
        self.section = match[1]
        self.form = self.form or "C result.txt"

    @rule(r"(?:; )?ERROR[ \t]+(?:INVALID\b|Runtime of phase).*")
    def mark(self, match: re.Match[str], line: Line) -> None:
        """Take a complaint of IO500: an optional phase does not spoil the official score."""
        name, complaint = core(self.section), excerpt(match[0])
        official = name in BANDWIDTH or name in METADATA
        if self.form == "C result.txt" and name not in ("", "run", "SCORE") and not official:
            self.phases.setdefault(self.section, Phase()).invalid = complaint
        elif self.form != "C result.txt":
            self.pending = [*self.pending[:3], complaint]
        else:
            self.complain(complaint)

    @rule(
        r"([\w\-]{1,40})[ \t]+=[ \t]*(.*)",
        wanted=r"(?:version|procs|config-hash|result-dir|mode|score|t_delta|t_start|hash|MD|BW|SCORE"
        r"|found|total-files|throughput-stonewall|rate-stonewall|exe)[ \t]+=",
    )
    def pair(self, match: re.Match[str], line: Line) -> None:
        if not line.cut:
            self.form = self.form or "C result.txt"
            self._pair(match[1], match[2].strip())

    def _pair(self, key: str, value: str) -> None:
        name = self.section
        if key == "version":
            self.headed, self.version = True, excerpt(value, 80)
        elif key in _RUN_FACTS and name in ("", "run"):
            self.facts[key] = int(value) if value.isdecimal() and len(value) < 12 else excerpt(value)
        elif name in ("SCORE", "SCOREX"):
            score = self.scores.setdefault(name, Score())
            if key == "hash":
                self.facts.setdefault("hash", excerpt(value))
                extended = self.facts.get("mode") == "extended"
                self.ended = score.whole() and (name == "SCOREX" or not extended)
                return
            first = value.split(" ", 1)[0].split("[", 1)[0]
            if key in ("MD", "BW", "SCORE"):
                kinds = {"MD": "metadata", "BW": "bandwidth", "SCORE": "total"}
                setattr(score, kinds[key], first)
            if "[INVALID]" in value:
                score.invalid = True
                if name == "SCORE":
                    self.complain(excerpt(f"SCORE = {value}"))
        elif name and name != "run":
            phase = self.phases.setdefault(name, Phase())
            if key == "score":
                phase.value, phase.unit = value, "GiB/s" if name.startswith("ior") else "kIOPS"
            elif key == "t_delta":
                phase.time_s = value
            elif key != "exe" and len(phase.facts) < 8:
                phase.facts[key] = excerpt(value)

    @rule(r"; END")
    def end(self, match: re.Match[str], line: Line) -> None:
        self.ended = bool(self.scores)

    @rule(r"\[Starting\]")
    def starting(self, match: re.Match[str], line: Line) -> None:
        self.headed, self.form = True, "bash"

    fatal = keeps(r"(?:FATAL \(|Error: the benchmark returned|; ERROR|ERROR ).*", "errors")

    def runs(self) -> Iterator[Run]:
        yield _run(self)


@PARSERS.register("io500")
class Io500(OutputParser):
    """Reads phases and scores. What ior and mdtest print inside belongs to the phases."""

    benchmark = "io500"
    description = "IO500: bandwidth and metadata scores of a file system, C and bash versions"
    validity_notes = Proof(
        identity="`IO500 version`, lines `[RESULT]` and `[SCORE]`, the keys of result.txt, `[Starting] ior_easy_write`",
        success="a whole `[SCORE]`, `[SCOREX]` too in extended mode; it is the geometric mean of the phases (in 2017 the product); a write phase below 300 s is `suspicious`",
        failure="`-invalid`, `ERROR INVALID`, a score that the phases refute",
    )
    programs = (r"io500(?:\.sh)?",)
    nested = frozenset(("ior", "mdtest"))
    output = _Output
    start_patterns = (
        r"IO500 version[ \t]+\S",
        r"\[RESULT(?:-invalid)?\][ \t]+(?:BW|IOPS)[ \t]",
        rf"\[RESULT(?:-invalid)?\][ \t]+{_NAME}[ \t]+\d",
        r"\[SCOREX?[ ]?(?:-invalid)?\][ \t]+Bandwidth[ \t]",
        r"version[ \t]+=[ \t]+io500-",
        r"config-hash[ \t]+=[ \t]+[0-9A-F]{1,8}(?=\s|\Z)",
        r"(?:throughput|rate)-stonewall[ \t]+=",
        r"\[Starting\] (?:ior|mdtest)_(?:easy|hard)_",
    )

    def first(self, block: Block) -> Output:
        """Return the first run; result.txt has the number of processes before the version."""
        output = super().first(block)
        if (match := _PROCS.match(block.last_words())) is not None:
            output.facts["procs"] = int(match[1])
        return output


def _mislabelled(outcome: _Output) -> bool:
    """Tell whether the score says GB/s over phases in GiB/s, whose mean it is."""
    score = outcome.scores.get("SCORE")
    units = {phase.unit for phase in outcome.phases.values()}
    return score is not None and score.unit == "GB/s" and "GiB/s" in units


def _add_metrics(draft: Draft, outcome: _Output) -> None:
    for name, score in outcome.scores.items():
        prefix, old = name.lower(), score.unit.startswith("M")
        # Only [SCORE] is what the list ranks.
        official = name == "SCORE"
        draft.add_metric(prefix, score.total, "1", registered="io500_score" if official and not old else None)
        bandwidth = draft.add_metric(f"{prefix}_bandwidth", score.bandwidth, score.unit)
        if bandwidth is not None and official and score.unit in ("GB/s", "GiB/s"):
            binary = score.unit == "GiB/s" or _mislabelled(outcome)
            same = Normalised(
                name="storage_bandwidth", value=bandwidth.value * (2.0**30 if binary else 1e9), unit="B/s"
            )
            draft.metrics[-1] = replace(bandwidth, normalised=same)
        registered = "metadata_rate" if official else None
        draft.add_metric(f"{prefix}_metadata", score.metadata, "1/s" if old else "kIOPS", registered=registered)
    for name, phase in outcome.phases.items():
        if not phase.value or (phase.scored is False and not number(phase.value)):
            continue
        kind, registered = (
            ("bandwidth", "storage_bandwidth") if phase.unit.endswith("B/s") else ("rate", "metadata_rate")
        )
        draft.add_metric(kind, phase.value, phase.unit, registered=registered, phase=name)
        draft.add_metric("time", phase.time_s, "s", phase=name)


def _run(outcome: _Output) -> Run:
    draft = outcome.draft(variant=outcome.form, stops=[*outcome.errors[:2], outcome.block.take_trouble()])
    _add_metrics(draft, outcome)
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


def _judge(draft: Draft, outcome: _Output) -> None:
    extended = outcome.facts.get("mode") == "extended"
    score = outcome.scores.get("SCORE") or outcome.scores.get("SCOREX")
    if score is None or not score.whole():
        done = sum(1 for phase in outcome.phases.values() if phase.value)
        draft.mark_truncated(f"after {done} phases, before the score")
    elif extended and "SCOREX" not in outcome.scores:
        draft.mark_cut("ends before [SCOREX]")
    if draft.ok:
        draft.mark_invalid(wrong(outcome))
    draft.mark_impossible()
