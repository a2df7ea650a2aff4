"""What a report says of exported steps: their size, and how far the check of what they compute reaches."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.entries import AnyRecord
from transect.report.engine.blocks import Lead, Part, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.porting import reasons, rules, split
from transect.report.engine.text import in_unit, number


def _name(record: AnyRecord) -> str:
    cell = record.cell
    parts = [str(cell.workload), str(cell.get("optimiser"))]
    epochs, clip = cell.get("base_epochs"), cell.get("clip")
    parts += [f"base of {epochs} epochs"] if epochs is not None else []
    parts += ["accumulates"] if cell.get("accumulates") else []
    parts += [f"clipped at {clip:g}"] if clip else []
    return ", ".join(parts)


def _problems(record: AnyRecord) -> dict[str, dict[str, object]]:
    found = record.details.get("problems")
    return found if isinstance(found, dict) else {}


def _blind(record: AnyRecord) -> int:
    return sum(problem.get("not_checkable_from") is not None for problem in _problems(record).values())


def _least_error(record: AnyRecord) -> float | None:
    """Return the error of the learning rate that is seen on all paths."""
    errors = [problem.get("detects_rate_error") for problem in _problems(record).values()]
    known = [error for error in errors if isinstance(error, float)]
    return max(known, default=None)


def steps_body(context: Context) -> Iterator[Part]:
    """List the files, and for how many paths the tolerance tells nothing at the end."""
    records, good, _ = split(context, "export-training-step")
    if not records:
        return
    yield Lead(
        f"{len(good)} of {len(records)} training steps were exported as ordinary ONNX graphs whose "
        "first updates, run by ONNX Runtime, are PyTorch's."
    )
    yield table(
        good,
        [
            words("Step", _name),
            digits("File", lambda record: record.value("model_bytes"), in_unit("B")),
            digits("Opset", lambda record: record.value("opset")),
            digits("Operators", lambda record: record.value("operators")),
            digits("Export time", lambda record: record.value("export_time"), in_unit("s")),
            digits("Paths", lambda record: len(_problems(record))),
            digits("not checkable to their end", _blind),
            digits("Rate error seen from", _least_error, number),
        ],
        caption="The steps",
    )
    yield reasons(records, _name)
    yield from rules(good)


REPORT = StageReport(
    stage="export-training-step", sections=(Section(key="steps", title="Training steps", order=655, make=steps_body),)
)
