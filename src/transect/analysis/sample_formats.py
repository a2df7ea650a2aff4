"""Files of samples that other programs write: hyperfine, pyperf and asv, told apart by what is in them.

What each writes: hyperfine's `--export-json`; pyperf's JSON of version 1.0, a run of which is one worker process; asv's
result files of version 2, with the samples only where it was asked to record them.
"""

from __future__ import annotations

import gzip
import json
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from transect.analysis.asv_samples import AsvFile, asv_samples, declared_beside
from transect.analysis.sampled import NO_SAMPLES, UNITS, ReadFile, Repeat, Sampled, text_of
from transect.domain.errors import BadInput

EXPECTED = "a result folder such as results/quick, or a file of hyperfine (--export-json), pyperf (-o) or asv (asv run)"


class _HyperfineResult(ReadFile):
    command: str
    times: list[float] | None = None
    median: float | None = None
    mean: float | None = None
    exit_codes: list[int | None] | None = None
    parameters: dict[str, str | float] = Field(default={})


class _Hyperfine(ReadFile):
    results: list[_HyperfineResult] = Field(min_length=1)


class _PyperfRun(ReadFile):
    metadata: dict[str, Any] = Field(default={})
    values: list[float] = Field(default=[])


class _PyperfBenchmark(ReadFile):
    metadata: dict[str, Any] = Field(default={})
    runs: list[_PyperfRun]


class _Pyperf(ReadFile):
    version: Literal["1.0"]
    metadata: dict[str, Any] = Field(default={})
    benchmarks: list[_PyperfBenchmark] = Field(min_length=1)


def read_samples(path: Path) -> list[Sampled]:
    """Return the benchmarks of a file in its order. Raises BadInput for what none of the programs wrote, or not whole."""
    raw = _content(path)
    content = raw if isinstance(raw, dict) else dict[str, Any]()
    results, benchmarks = content.get("results"), content.get("benchmarks")
    try:
        if isinstance(results, list) and all(isinstance(one, dict) and "command" in one for one in results):
            found = list(_hyperfine(_Hyperfine.model_validate(content)))
        elif isinstance(benchmarks, list) and all(isinstance(one, dict) and "runs" in one for one in benchmarks):
            found = list(_pyperf(_Pyperf.model_validate(content)))
        elif isinstance(results, dict) and "commit_hash" in content:
            found = list(asv_samples(AsvFile.model_validate(content), declared_beside(path)))
        else:
            raise ValueError(f"no samples that are known: expected {EXPECTED}")
        if not found:
            raise ValueError("no benchmark in it has a result: expected one or more")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise BadInput(f"{path}: its {where} cannot be used: {first['msg']}: expected {EXPECTED}") from None
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for one in found:
        if (one.name, one.parameters) in seen:
            more = "".join(f", {name} {value}" for name, value in one.parameters)
            raise BadInput(
                f"{path}: two benchmarks are called {one.name!r}{more}: expected another name for each, such as hyperfine's -n gives"
            )
        seen.add((one.name, one.parameters))
    return found


def _content(path: Path) -> Any:
    try:
        raw = path.read_bytes()
        # As pyperf writes a file that is called `.json.gz`.
        raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{path}: is no whole JSON ({error}): expected {EXPECTED}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}: expected {EXPECTED}") from None


def _hyperfine(content: _Hyperfine) -> Iterator[Sampled]:
    for result in content.results:
        times, codes = result.times, result.exit_codes
        middle = result.median if result.median is not None else result.mean
        doubt = ""
        if times:
            ended = codes if codes is not None else [0] * len(times)
            if len(ended) != len(times):
                raise ValueError(
                    f"{result.command!r} has {len(times)} times and {len(ended)} exit codes: expected one each"
                )
            # What a program took that failed, as `--ignore-failure` lets it, or that a signal ended (none), is no time of it.
            repeats = [Repeat(value=time if code == 0 else None) for time, code in zip(times, ended, strict=True)]
        elif middle is not None:
            repeats, doubt = [Repeat(value=middle)], NO_SAMPLES
        else:
            raise ValueError(f"{result.command!r} has no times: expected those that --export-json writes")
        yield Sampled(
            program="hyperfine",
            name=text_of(result.command),
            unit="s",
            repeats=repeats,
            parameters=tuple((text_of(name), text_of(value)) for name, value in sorted(result.parameters.items())),
            doubt=doubt,
        )


def _pyperf(content: _Pyperf) -> Iterator[Sampled]:
    for benchmark in content.benchmarks:
        # What all benchmarks of a file say alike stands above them, the name of a single one too.
        known = content.metadata | benchmark.metadata
        if not isinstance(known.get("name"), str):
            raise ValueError("a benchmark of pyperf has no name: expected one in its metadata")
        name = text_of(known["name"])
        unit = text_of(known.get("unit", "second"))
        # A run without values is one in which pyperf found out how many loops it takes.
        repeats = [
            Repeat(value=statistics.median(run.values), started=when, ended=when)
            for run in benchmark.runs
            if run.values
            for when in [str(run.metadata.get("date") or known.get("date") or "").replace(" ", "T")]
        ]
        if not repeats:
            raise ValueError(f"{name!r} has no values: expected those that pyperf writes with -o")
        every = [known, *(run.metadata for run in benchmark.runs)]
        yield Sampled(
            program="pyperf",
            name=name,
            unit=UNITS.get(unit, unit),
            repeats=repeats,
            provenance=_pyperf_facts(name, every),
            doubt="" if unit in ("second", "byte") else "pyperf does not tell whether more or less of it is better",
        )


def _pyperf_facts(name: str, every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what pyperf tells of machine and software; runs of one file may have been made on several."""

    def told(key: str) -> str:
        return " / ".join(dict.fromkeys(text_of(one[key]) for one in every if one.get(key) is not None))

    def named(**keys: str) -> dict[str, str]:
        return {word: value for word, key in keys.items() if (value := told(key))}

    run = [told(key) for key in ("command", "timeit_setup", "timeit_stmt")]
    return {
        **named(host="hostname", cpu_model="cpu_model_name", cores="cpu_count", kernel="platform"),
        "environment": {"name": "pyperf"},
        "libraries": named(pyperf="perf_version", python="python_version", compiler="python_compiler"),
        "variables": named(
            aslr="aslr", cpu_affinity="cpu_affinity", cpu_config="cpu_config", hash_seed="python_hash_seed"
        )
        | ({f"command of {name}": "; ".join(filter(None, run))} if any(run) else {}),
    }
