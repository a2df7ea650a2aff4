"""Result files of asv, version 2; the samples are there only where it was asked to record them."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transect.analysis.sampled import NO_SAMPLES, UNITS, ReadFile, Repeat, Sampled, text_of
from transect.domain.until import MIN_RUNS

# asv tells a benchmark's unit by the type in its name, and the name of one that tracks any number by `track_`.
_TIME = re.compile(r"^(?:Time[A-Z_]|time_|Timeraw[A-Z_]|timeraw_)")
_BYTES = re.compile(r"^(?:Mem[A-Z_]|mem_|PeakMem[A-Z_]|peakmem_)")
# Processes that asv spreads a benchmark's samples over where it is told nothing else.
_ROUNDS = 2
_MACHINE = {"host": "machine", "cpu_model": "cpu", "cores": "num_cpu", "kernel": "os"}


class AsvFile(ReadFile):
    """What is taken of a file of asv: a row of `results` has as many of the columns as its kind of benchmark fills."""

    version: Literal[2]
    result_columns: list[str]
    results: dict[str, list[Any]] = Field(min_length=1)
    commit_hash: str | None = None
    params: dict[str, Any] = Field(default={})
    python: str | None = None
    requirements: dict[str, Any] = Field(default={})
    env_vars: dict[str, Any] = Field(default={})


class _Row(BaseModel):
    """One benchmark: a place for each combination of its parameters. NaN: it was skipped there, none: it failed."""

    model_config = ConfigDict(strict=True)

    result: list[float | None] | None = None
    params: list[list[str]] = []
    version: str | None = None
    # Milliseconds since 1970, before the year 10000, and seconds.
    started_at: int | None = Field(default=None, ge=0, lt=2 * 10**14)
    duration: float | None = Field(default=None, ge=0, lt=10**9)
    samples: list[list[Annotated[float, Field(allow_inf_nan=False)]] | None] | None = None


def declared_beside(path: Path) -> Mapping[str, Any]:
    """Return what asv wrote of its benchmarks beside their results; nothing where the file is not there, or not whole."""
    try:
        content = json.loads((path.resolve().parent.parent / "benchmarks.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def asv_samples(content: AsvFile, declared: Mapping[str, Any]) -> Iterator[Sampled]:
    """Yield each benchmark at each choice of its parameters. Raises ValueError for a row that fits no other."""
    machine = {key: text_of(value) for key, value in content.params.items() if value is not None}
    ram = machine.get("ram", "")
    facts = {
        **({"memory_bytes": int(ram)} if re.fullmatch("[0-9]{1,18}", ram) else {}),
        **{word: machine[key] for word, key in _MACHINE.items() if machine.get(key)},
        "git": {"commit": content.commit_hash},
        "environment": {"name": "asv"},
        "libraries": {"python": content.python or "not told"}
        | {name: text_of(version) for name, version in content.requirements.items()},
        # As a shell writes it, the name tells whether the value is a secret.
        "variables": {k: text_of(f"{k}={value}").partition("=")[2] for k, value in content.env_vars.items()},
    }
    for name, values in content.results.items():
        if len(values) > len(content.result_columns):
            raise ValueError(f"{name!r} has {len(values)} columns: expected {len(content.result_columns)} at most")
        row = _row(name, dict(zip(content.result_columns, values, strict=False)))
        known = declared.get(name)
        # One of another version of the benchmark says nothing of this one.
        known = known if isinstance(known, dict) and known.get("version") == row.version else {}
        points = list(itertools.product(*row.params))
        results = row.result if row.result is not None else [None] * len(points)
        samples = row.samples if row.samples is not None else [None] * len(points)
        if not len(points) == len(results) == len(samples):
            raise ValueError(
                f"{name!r} has {len(results)} results and {len(samples)} samples for {len(points)} parameters"
            )
        for point, result, of_point in zip(points, results, samples, strict=True):
            yield _sampled(name, row, known, point, result, of_point, facts)


def _row(name: str, values: Mapping[str, Any]) -> _Row:
    try:
        return _Row.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{name!r}: its {'.'.join(map(str, first['loc']))} cannot be used: {first['msg']}") from None


def _sampled(
    name: str,
    row: _Row,
    known: Mapping[str, Any],
    point: Sequence[str],
    result: float | None,
    samples: Sequence[float] | None,
    facts: Mapping[str, Any],
) -> Sampled:
    names = known.get("param_names")
    names = names if isinstance(names, list) and len(names) == len(point) else range(1, len(point) + 1)
    short = name.rpartition(".")[2]
    usual = "seconds" if _TIME.match(short) else "bytes" if _BYTES.match(short) else "unit"
    unit, rounds = known.get("unit"), known.get("rounds")
    unit = unit if isinstance(unit, str) else usual
    rounds = rounds if isinstance(rounds, int) and rounds > 0 else _ROUNDS
    started, ended = "", ""
    if row.started_at is not None:
        began = row.started_at / 1000
        started, ended = (
            datetime.fromtimestamp(moment, UTC).isoformat() for moment in (began, began + (row.duration or 0.0))
        )
    middles, doubt = [result], NO_SAMPLES
    if samples and result is not None:
        # A process has its own layout of memory and state of the clock: its samples are one repeat, in order of rounds.
        amount = min(rounds, len(samples))
        cuts = [len(samples) * place // amount for place in range(amount + 1)]
        middles = [statistics.median(samples[a:b]) for a, b in itertools.pairwise(cuts)]
        doubt = "" if amount >= MIN_RUNS else f"asv timed it in {amount} processes: expected `rounds` of 3 or more"
    if UNITS.get(unit) not in ("s", "B"):
        doubt = f"asv does not tell whether more or less of it is better; {doubt}".removesuffix("; ")
    failed = result is None or math.isinf(result)
    skipped = result is not None and math.isnan(result)
    return Sampled(
        program="asv",
        name=text_of(name),
        unit=UNITS.get(unit, text_of(unit)),
        repeats=[
            Repeat(value=None if failed or skipped else middle, started=started, ended=ended) for middle in middles
        ],
        parameters=tuple((text_of(word), text_of(value)) for word, value in zip(names, point, strict=True)),
        settings={"code of the benchmark": row.version[:16]} if row.version else {},
        provenance=facts,
        doubt="" if failed or skipped else doubt,
        skipped="asv skipped it" if skipped else "",
    )
