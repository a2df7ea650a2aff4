"""What the runtimes ran with, as they say and as ONNX Runtime says; what their outputs are."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from transect.analysis.groups import grouped
from transect.analysis.serving import InferGroup, details_of, partly_compared, takes_onnx, was_compared
from transect.report.engine.blocks import Chip, Column, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import names
from transect.report.engine.text import clean, factor, quantity
from transect.report.topics.serving.condition_facts import conditions, kernels_of, seen_options
from transect.report.topics.serving.condition_findings import gives_wrong_output, worst

# Models named in one place of a table.
_MODELS = 3


@dataclass(frozen=True, kw_only=True)
class _Runtime:
    """All groups of one runtime, and what its conditions differ in from the others'."""

    name: str
    groups: list[InferGroup]
    differing: list[str]
    silent: bool

    def details(self, key: str) -> list[object]:
        """Return what the usable records' details have under a key."""
        return [value for group in self.groups for value in details_of(group, key)]

    def text(self, key: str) -> str:
        """Write the values that occur."""
        return clean(", ".join(sorted({str(value) for value in self.details(key)}))) or "–"

    def value(self, name: str) -> float | None:
        """Return the largest value of a metric, wrong runs included."""
        values = [value for group in self.groups if (value := worst(group, name)) is not None]
        return max(values, default=None)


def condition_blocks(context: Context) -> Iterator[Part]:
    """A table of what each runtime ran with, and how far its outputs are from what was expected."""
    groups = context.of("infer")
    found = conditions(groups)
    rows = [
        _Runtime(
            name=name,
            groups=members,
            silent=name in found.silent,
            differing=[difference.what for difference in found.differences if difference.runtime == name],
        )
        for name, members in sorted(grouped(groups, lambda group: group.cell.runtime).items())
        if any(group.ok or gives_wrong_output(group) for group in members)
    ]
    if not rows:
        return
    yield table(
        rows, _conditions(rows, found.seen), caption="What the runtimes ran with, threads aside, and their outputs"
    )
    yield from _common(rows)
    if any(row.details("run_over_profiler") for row in rows):
        yield note(
            "Run over ONNX Runtime's profiler: the language's own times over those that ONNX Runtime measured of the same runs. "
            "Near 1 its clock agrees and the language adds little."
        )


def _conditions(rows: Sequence[_Runtime], seen: bool) -> list[Column[_Runtime]]:
    set_by_all, had_by_all = _shared(rows, _options), _shared(rows, _seen)
    columns = [
        words("Could not be set", _not_set),
        words("Set beside what all set", lambda row: _listed(_options(row) - set_by_all)),
        words("Had beside what all had", lambda row: _listed(_seen(row) - had_by_all)),
        words("Kernels", _kernels),
        words("Version", lambda row: row.text("runtime_version")),
        words("Language", lambda row: row.text("language_version")),
        words("Library", _library),
        words("Provider used", lambda row: row.text("provider_used")),
        words("Run over ONNX Runtime's profiler", _over_profiler),
        digits("Largest difference", lambda row: row.value("max_abs_difference")),
        digits("NaN and Inf", lambda row: row.value("nonfinite_outputs") or None),
    ]
    filled = [c for c in columns if any(c.entry(row) not in ("–", "", None) for row in rows)]
    beside = [words("Beside the others", _beside)] if seen else []
    return [words("Runtime", lambda row: row.name), words("Output", _output), *beside, *filled]


def _library(row: _Runtime) -> str:
    sizes = {size for size in row.details("library_size") if isinstance(size, (int, float))}
    size = f", {quantity(max(sizes), 'B')}" if sizes else ""
    name = row.text("library")
    return name if name == "–" else name + size


def _option_texts(options: dict[str, object]) -> set[str]:
    # Threads are an axis of the cell.
    return {
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in options.items()
        if "num_threads" not in key and value not in ("", None)
    }


def _listed(options: set[str]) -> str:
    return clean(", ".join(sorted(options))) or "–"


def _shared(rows: Sequence[_Runtime], options_of: Callable[[_Runtime], set[str]]) -> set[str]:
    """Return the options that are the same in all runtimes that take ONNX models and report options."""
    every = [options for row in rows if any(map(takes_onnx, row.groups)) and (options := options_of(row))]
    return set.intersection(*every) if every else set()


def _common(rows: Sequence[_Runtime]) -> Iterator[Part]:
    """Name once what all runtimes set, and what ONNX Runtime says that all had."""
    for what, options in (("All set", _options), ("ONNX Runtime itself says that all had", _seen)):
        shared = _shared(rows, options)
        if shared:
            yield note(f"{what}: {_listed(shared)}.")


def _options(row: _Runtime) -> set[str]:
    """Write the options of cells with the set `equal`; other sets have a table of their own."""
    given = [
        options
        for group in _equal(row)
        for options in details_of(group, "session_options")
        if isinstance(options, dict)
    ]
    return set().union(*map(_option_texts, given))


def _seen(row: _Runtime) -> set[str]:
    given = [seen for group in _equal(row) if (seen := seen_options(group)) is not None]
    return set().union(*map(_option_texts, given))


def _equal(row: _Runtime) -> list[InferGroup]:
    return [group for group in row.groups if group.cell.options == "equal"]


def _not_set(row: _Runtime) -> str:
    given = {str(o) for options in row.details("options_not_set") if isinstance(options, list) for o in options}
    return clean(", ".join(sorted(given))) or "–"


def _kernels(row: _Runtime) -> str:
    counts = sorted(
        {
            ran["count"]
            for group in _equal(row)
            if (ran := kernels_of(group)) is not None and isinstance(ran.get("count"), int)
        }
    )
    if not counts:
        return "–"
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _over_profiler(row: _Runtime) -> str:
    """Write the least and the most of the groups' medians."""
    of_groups = [
        [ratio for ratio in details_of(group, "run_over_profiler") if isinstance(ratio, (int, float))]
        for group in _equal(row)
    ]
    ratios = sorted(statistics.median(values) for values in of_groups if values)
    ends = dict.fromkeys(factor(ratio) for ratio in (ratios[:1] + ratios[-1:]))
    return " – ".join(ends) or "–"


def _beside(row: _Runtime) -> Chip:
    if not any(map(takes_onnx, row.groups)):
        return Chip("no ONNX Runtime")
    if row.differing:
        return Chip("differs", "bad", title=clean("; ".join(row.differing)))
    return Chip("not told", "warn") if row.silent else Chip("the same", "good")


def _output(row: _Runtime) -> Chip:
    if amount := sum(map(gives_wrong_output, row.groups)):
        return Chip(f"wrong in {amount}", "bad")
    if partly := _partly(row):
        return Chip(partly, "warn", title="what is no tensor is compared by nobody")
    compared = any(map(was_compared, row.groups))
    return Chip("right", "good") if compared else Chip("not compared", "warn")


def _partly(row: _Runtime) -> str:
    """Name the models of which not all outputs were compared."""
    partly = {f"{part} of {group.cell.workload}" for group in row.groups if (part := partly_compared(group))}
    return names(sorted(partly), _MODELS)
