"""What a report says of files that are made, converted, loaded elsewhere or train: which work, and what they are like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from transect.analysis.entries import AnyRecord
from transect.analysis.labels import word
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip, Column, Lead, Part, Table, code, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.parts import Section, StageReport
from transect.report.engine.text import Writer, clean, in_unit, number, percent, plain, tenths

Name = Callable[[AnyRecord], str]
RULE = {"tolerance_rule": "Tolerance"}


def metric(title: str, name: str, write: Writer = plain) -> Column[AnyRecord]:
    """Return the column of a metric of records."""
    return digits(title, lambda record: record.value(name), write)


def detail(record: AnyRecord, key: str) -> float | None:
    """Return a number of a record's details; None where there is none."""
    value = record.details.get(key)
    return float(value) if isinstance(value, (int, float)) else None


# What a file is like, and how far its outputs are from what was expected.
FILE = (
    metric("Size", "model_bytes", in_unit("B")),
    metric("Opset", "opset"),
    metric("Operators", "operators"),
    metric("Export time", "export_time", in_unit("s")),
)
DIFFERENCE = metric("Largest difference", "max_abs_difference")


def _tolerance(record: AnyRecord) -> float | None:
    """Return the tolerance of the output that has the largest one."""
    given = record.details.get("tolerance")
    return max(given.values()) if isinstance(given, dict) and given else None


TOLERANCE = digits("Tolerance", _tolerance)


def rules(records: Iterable[AnyRecord], key: str = "tolerance_rule", title: str = "Tolerance") -> Iterator[Part]:
    """Say once what records have in common under a key of their details, where they have it."""
    for text in sorted({str(record.details[key]) for record in records if key in record.details}):
        yield note(clean(f"{title}: {text}."))


def _verdict(record: AnyRecord) -> Chip:
    """Return how a cell ended in a word or two.

    What nobody offers is no failure; what was not tried for want of an input is none of its own.
    """
    if record.status is Status.OK:
        return Chip("pass", "good")
    if record.status is Status.SKIPPED:
        offered = record.cause is not Cause.UNSUPPORTED
        return Chip("not tried" if offered else "not offered", "warn" if offered else "plain")
    return Chip("wrong result" if record.cause is Cause.WRONG_RESULT else "fail", "bad")


def _matrix(records: Sequence[AnyRecord], title: str, row: Name, column: Name, caption: str) -> Table:
    """Return a verdict for each row and column; an empty place was not asked for.

    Rows that nobody offers are counted in the caption.
    """
    verdicts = {(row(record), column(record)): _verdict(record) for record in records}
    offered = {at for (at, _), chip in verdicts.items() if chip.text != "not offered"}
    left_out = len({at for at, _ in verdicts} - offered)
    more = f"; {left_out} more rows are offered by nobody" if left_out else ""

    def place(name: str, at: str) -> Chip | None:
        return verdicts.get((at, name))

    every = sorted({name for _, name in verdicts})
    columns = [words(title, clean), *(words(name, partial(place, name)) for name in every)]
    return table(sorted(offered), columns, caption=f"{caption}{more}")


def _told(
    context: Context,
    stage: str,
    name: Name,
    columns: Sequence[Column[AnyRecord]],
    lead: Callable[[Sequence[AnyRecord], int, int], str],
    caption: str,
    *,
    across: tuple[str, Name, Name, str] | None = None,
    held: dict[str, str] = RULE,
) -> Iterator[Part]:
    """Say how many of a stage's cells ended well, show which, why the others did not, and what `columns` tell of them.

    `lead` is given those that ended well, the number of cells that somebody offers to run, and of all; `across` are a
    matrix's title, rows, columns and caption; `held` titles of what files have in common, by its key in the details.
    """
    records = [record for group in context.of(stage) for record in group.records]
    good = [record for record in records if record.status is Status.OK]
    failed = [record for record in records if record.status is Status.FAILED]
    if not records:
        return
    tried = sum(record.status is not Status.SKIPPED for record in records)
    yield Lead(lead(good, tried, len(records)))
    if across:
        yield _matrix(records, *across)
    if failed:
        why = [words("Failed", name), words("", _verdict), code("Reason", lambda record: clean(record.message))]
        yield table(failed, why, caption="Why it failed")
    if good:
        yield table(good, [words("File", name), *columns], caption=caption)
    for key, title in held.items():
        yield from rules(good, key, title)


def _exporter(record: AnyRecord) -> str:
    return word("exporter", record.cell.get("exporter"))


def _model(record: AnyRecord) -> str:
    return f"{record.cell.workload} by {_exporter(record)}"


def _models(context: Context) -> Iterator[Part]:
    """Show every model by every exporter, the facts of the files, and the reasons of failures."""
    return _told(
        context,
        "generated-model",
        _model,
        [*FILE, DIFFERENCE, TOLERANCE, words("Rows", lambda r: "any number" if r.details.get("batched") else "fixed")],
        lambda good, tried, _: (
            f"{len(good)} of {tried} exports that exporters offer give a valid file that computes "
            "what the framework computes. Weights and inputs are drawn."
        ),
        "The files",
        across=("Model", lambda record: str(record.cell.workload), _exporter, "Models by exporters"),
    )


def _share(record: AnyRecord) -> float | None:
    """Return the size of the converted file over that of the float32 one."""
    after, before = record.value("model_bytes"), detail(record, "model_bytes_before")
    return after / before if after and before else None


def _converted_words(good: Sequence[AnyRecord], tried: int, _: int) -> str:
    scored = sum(record.value("accuracy") is not None for record in good)
    return (
        f"{len(good)} of {tried} conversions that are offered run in ONNX Runtime. {scored} are of trained models and "
        "scored on their test sets; the others have drawn weights, and say whether a conversion runs and how far its "
        "outputs move, not what it costs in accuracy."
    )


def _conversions(context: Context) -> Iterator[Part]:
    """Show every model by every precision, then sizes, differences and accuracies."""
    return _told(
        context,
        "convert",
        lambda record: f"{_model(record)} in {record.cell.precision}",
        [
            metric("Size", "model_bytes", in_unit("B")),
            digits("Of float32", _share, percent),
            digits("Accuracy before", lambda record: detail(record, "accuracy_before"), tenths),
            metric("After", "accuracy", tenths),
            metric("Loss", "accuracy_loss", tenths),
            digits("Scored", lambda record: record.details.get("rows_scored")),
            metric("Same class", "top1_agreement", percent),
            DIFFERENCE,
            digits("Compared", lambda record: record.details.get("rows_compared")),
        ],
        _converted_words,
        "What conversions cost",
        across=("Model", _model, lambda record: record.cell.precision, "Models by precisions"),
        held={"converter": "Converted by", **RULE},
    )


def _loader(record: AnyRecord) -> str:
    return word("framework", record.cell.get("loader"))


def _round_trips(context: Context) -> Iterator[Part]:
    """Show every file by every framework, the reasons of failures, and the differences."""
    return _told(
        context,
        "roundtrip",
        lambda record: f"{_model(record)} into {_loader(record)}",
        [DIFFERENCE, TOLERANCE, words("Rows", lambda r: str(r.details.get("rows_compared") or "all"))],
        lambda good, tried, _: (
            f"In {len(good)} of {tried} cases another framework loads the file, and computes what "
            "the one that made it does, within the file's own tolerance."
        ),
        "Differences of round trips",
        across=("File", _model, _loader, "Files by frameworks that load them"),
        held={},
    )


def _step(record: AnyRecord) -> str:
    cell = record.cell
    parts = [str(cell.workload), str(cell.get("optimiser"))]
    epochs, clip = cell.get("base_epochs"), cell.get("clip")
    parts += [f"base of {epochs} epochs"] if epochs is not None else []
    parts += ["accumulates"] if cell.get("accumulates") else []
    parts += [f"clipped at {clip:g}"] if clip else []
    return ", ".join(parts)


def _of_paths(record: AnyRecord, key: str) -> list[float]:
    """Return what the paths of a step, on which it was checked, tell under a key."""
    paths = record.details.get("problems")
    every = paths.values() if isinstance(paths, dict) else ()
    return [path[key] for path in every if path.get(key) is not None]


def _steps(context: Context) -> Iterator[Part]:
    """List the files, and for how many paths the tolerance tells nothing at the end."""
    return _told(
        context,
        "export-training-step",
        _step,
        [
            *FILE,
            digits("Paths", lambda record: len(record.details.get("problems") or ())),
            digits("not checkable to their end", lambda record: len(_of_paths(record, "not_checkable_from"))),
            # That of the learning rate which is seen on all paths.
            digits("Rate error seen from", lambda r: max(_of_paths(r, "detects_rate_error"), default=None), number),
        ],
        lambda good, _, every: (
            f"{len(good)} of {every} training steps were exported as ordinary ONNX graphs whose "
            "first updates, run by ONNX Runtime, are PyTorch's."
        ),
        "The steps",
    )


REPORT = StageReport(
    sections=(
        Section(key="models", title="Models by exporters", order=520, make=_models),
        Section(key="conversions", title="Lower precisions", order=540, make=_conversions),
        Section(key="roundtrips", title="Round trips", order=560, make=_round_trips),
        Section(key="steps", title="Training steps", order=655, make=_steps),
    )
)
