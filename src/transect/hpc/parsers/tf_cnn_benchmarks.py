"""tf_cnn_benchmarks: TensorFlow's convolutional networks, training, evaluation and forward only.

The result is `total images/sec`, over all steps after the warm-up; the `images/sec` of a step line
is the running mean over the steps before it, with its uncertainty and the jitter of the steps
(`get_perf_timing` in benchmark_cnn.py). Columns after it are named by the table's header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parameter, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._learning import ERRORS, LOGGED, LoggedOutput, Samples
from transect.hpc.rules import RankParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import UNCUT, log_metric, number

_HEADER = re.compile(
    r"(TensorFlow|Model|Dataset|Mode|SingleSess|Batch size|Num batches|Num epochs|Devices"
    r"|NUMA bind|Data format|Layout optimizer|Optimizer|Variables|AllReduce|Sync|Staged vars"
    r"|RewriterConfig|Horovod on|Precision|Task)[ \t]*:[ \t]{1,40}(\S.*)$"
)
_GLOBAL = re.compile(r"(\d{1,9})(?:\.0)? global")
_STEP = re.compile(rf"(\d{{1,12}})\s+images/sec: ({UNCUT}) \+/- ({UNCUT}) \(jitter = ({UNCUT})\)((?:\s.*)?)$")
_TOTAL = re.compile(rf"total (images|sentences|examples)/sec: ({UNCUT})")
_TIME_STAMP = re.compile(r"\d{10}$")
_COLUMN = re.compile(r"[A-Za-z][\w@ .\-]{0,40}$")
_KEYS = {"Batch size": "batch_size_global", "SingleSess": "single_session", "Task": "task"}
# The total covers what the running mean covers: nothing but noise lies between the two.
_AGREEMENT = 0.2
# Settings in which the workers of one run do not differ.
_TELLING = ("tensorflow", "model", "dataset", "mode", "batch_size_global")


@dataclass(slots=True)
class _Table:
    """The steps of one worker, up to its total."""

    line: int
    columns: list[str] = field(default_factory=list)
    steps: int = 0
    last_step: int = 0
    rates: Samples = field(default_factory=lambda: Samples("images/sec", Direction.HIGHER, limit=1000))
    jitter: str = ""
    uncertainty: str = ""
    extra: dict[str, Samples] = field(default_factory=dict)
    accuracy: tuple[str, str] | None = None
    total: re.Match[str] | None = None


@dataclass(kw_only=True)
class _Output(LoggedOutput):
    """What stands behind one rank's label: workers without labels, as those of Horovod, print their tables at once."""

    tables: list[_Table] = field(default_factory=list)

    def open(self) -> list[_Table]:
        return [table for table in self.tables if table.total is None]

    def table(self, line: int) -> _Table:
        """Return the table that a line without a step belongs to."""
        waiting = self.open()
        if not waiting:
            self.tables.append(_Table(line=line if self.tables else self.line))
            return self.tables[-1]
        return next((table for table in waiting if table.steps), waiting[0])

    def table_of_step(self, step: int, line: int) -> _Table | None:
        """Return the table that a step is the next of, a new one if it is another worker's; None if it is another run's."""
        waiting = self.open()
        found = next((table for table in waiting if table.last_step < step), None)
        if found is None and (not waiting or any(table.last_step == step for table in waiting)):
            found = _Table(line=line if self.tables else self.line)
            self.tables.append(found)
        return found

    def unfinished(self) -> list[_Table]:
        """Return the tables without a total; heads beside other workers' steps are none."""
        waiting = self.open()
        stepped = [table for table in waiting if table.steps or table.accuracy]
        if any(table.total for table in self.tables):
            return stepped
        return stepped or waiting[:1] or ([_Table(line=self.line)] if self.facts else [])

    def begins(self, text: str) -> bool:
        """Tell whether a header or a first step follows a table that has had no total."""
        if (match := _HEADER.match(text)) is not None:
            # What died before its first step, and the next one with other settings.
            settings: dict[str, Parameter] = {}
            _setting(settings, match[1], match[2].strip())
            name, value = next(iter(settings.items()))
            changed = name in _TELLING and self.facts.get(name, value) != value
            return changed or (bool(self.tables) and text.startswith(("TensorFlow:", "Model: ")))
        if text.startswith("Step\t"):
            return any(table.steps > 1 or table.accuracy for table in self.tables)
        match = _STEP.match(text)
        return match is not None and bool(self.open()) and all(int(match[1]) < table.last_step for table in self.open())

    @rule(_TOTAL, behind=LOGGED)
    def total(self, match: re.Match[str], line: Line) -> None:
        table = self.table(line.number)
        table.total = match
        self.ready.append(_finish(self, table))
        self.ended = not self.unfinished()

    @rule(_STEP, wanted=r"\d{1,12}[ \t]{1,9}images/sec: ")  # half a row is a row that was cut
    def step(self, match: re.Match[str], line: Line) -> None:
        if (table := self._step(match, line)) is not None:
            table.last_step = int(match[1])
            table.uncertainty, table.jitter = match[3], match[4]
            _read_columns(table, match[5])

    @rule(rf"(\d{{1,12}})\s+({UNCUT}) examples/sec")
    def evaluation_step(self, match: re.Match[str], line: Line) -> None:
        self._step(match, line)

    def _step(self, match: re.Match[str], line: Line) -> _Table | None:
        table = self.table_of_step(int(match[1]), line.number)
        if table is not None:
            table.steps += 1
            table.rates.add(match[2])
        return table

    @rule(r"Step.*Img/sec.*", wanted=r"Step[ \t]{1,9}Img/sec")
    def head(self, match: re.Match[str], line: Line) -> None:
        names = [name.strip() for name in match[0].split("\t")[2:12]]
        columns = [name for name in names if _COLUMN.match(name)] or ["(none)"]
        place = line.number if self.tables else self.line
        self.tables.append(_Table(line=place, columns=columns))

    @rule(rf"Accuracy @ ?1 = ({UNCUT})\s+Accuracy @ ?5 = ({UNCUT})", behind=LOGGED)
    def accuracy(self, match: re.Match[str], line: Line) -> None:
        self.table(line.number).accuracy = (match[1], match[2])

    @rule(_HEADER)
    def setting(self, match: re.Match[str], line: Line) -> None:
        _setting(self.facts, match[1], match[2].strip())

    @rule(rf"({UNCUT}) per device")
    def per_device(self, match: re.Match[str], line: Line) -> None:
        self.facts.setdefault("batch_size_per_device", match[1])

    def runs(self) -> Iterator[Run]:
        return (_finish(self, table) for table in self.unfinished())


def _read_columns(table: _Table, text: str) -> None:
    cells = text.split()
    if cells and _TIME_STAMP.match(cells[-1]):
        cells.pop()  # some copies of the program append the time
    for name, cell in zip(table.columns, cells, strict=False):
        higher = "accuracy" in name
        direction = Direction.HIGHER if higher else Direction.LOWER
        table.extra.setdefault(name, Samples("1", direction, limit=1000)).add(cell)


def _setting(parameters: dict[str, Parameter], key: str, value: str) -> None:
    name = _KEYS.get(key, key.lower().replace(" ", "_"))
    if key == "Batch size":
        match = _GLOBAL.match(value)
        parameters.setdefault(name, int(match[1]) if match else excerpt(value))
    elif key == "Devices":
        names = re.findall(r"['\"]([^'\"]{1,80})['\"]", value)
        parameters.setdefault("devices", len(names) or excerpt(value))
    elif key == "Num batches" and value.isdigit() and len(value) < 18:
        parameters.setdefault(name, int(value))
    else:
        parameters.setdefault(name, excerpt(value))


@PARSERS.register("tf-cnn-benchmarks")
class TfCnnBenchmarks(RankParser):
    """Reads headers, step lines and totals."""

    benchmark = "tf-cnn-benchmarks"
    description = "tf_cnn_benchmarks: images per second of TensorFlow's convolutional networks"
    validity_notes = Proof(
        identity="its settings in their columns (`Mode:        training`), the head `Step\\tImg/sec`, a row of steps, `total images/sec:`",
        success="`total images/sec`, or the accuracy of an evaluation; the total is near the mean of all steps",
        failure="a total of 0, nan in a step or in the loss, a step beyond the number of batches",
    )
    output = _Output
    most_open = 1024
    ends_with_outputs = True
    start_patterns = (
        r"TensorFlow:  \d{1,2}\.\d",
        # Older versions begin with the model; seven blanks, and what follows is theirs too.
        r"Model:       [A-Za-z][\w.\-]{0,60}[ \t]{0,9}"
        r"(?=\n[^\n]{0,40}(?:Mode|Dataset):[ ]{4,9}\w|\Z)",
        r"Mode:        (?:BenchmarkMode|training|forward|evaluation|inference|train_and_eval)",
        r"SingleSess:  (?:True|False)",
        r"Step\tImg/sec\t",
        r"\d{1,12}\timages/sec: \d",
        rf"{LOGGED}total images/sec: ",
    )
    also = ERRORS
    nested = frozenset(("dl-training",))  # TensorFlow logs its own `global_step/sec`


def _metrics(output: _Output, table: _Table) -> list[LogMetric]:
    total = table.total
    out: list[LogMetric | None] = []
    if total is not None:
        # Without a backward pass it is no rate of training.
        trains = not re.search("forward|eval|infer", str(output.facts.get("mode", "")).lower())
        registered = "samples_per_second" if trains else "throughput"
        metric = log_metric("total", total[2], "1/s", registered=registered)
        if metric is not None:
            out.append(replace(metric, unit=f"{total[1]}/sec"))
    if table.rates.count:
        out.append(
            log_metric(
                "images_per_second", table.rates.last, "images/sec", size=table.last_step or None, phase="last step"
            )
        )
        lower = Direction.LOWER
        out.append(log_metric("uncertainty", table.uncertainty, "images/sec", lower))
        out.append(log_metric("jitter", table.jitter, "images/sec", lower))
    for name, samples in table.extra.items():
        out.append(log_metric(name, samples.last, "1", samples.direction, phase="last step"))
    if table.accuracy is not None:
        for name, printed, key in (
            ("accuracy_at_1", table.accuracy[0], "accuracy"),
            ("accuracy_at_5", table.accuracy[1], None),
        ):
            out.append(log_metric(name, printed, "1", registered=key))
    return [metric for metric in out if metric is not None]


def _finish(output: _Output, table: _Table) -> Run:
    mode = str(output.facts.get("mode", "")).lower().replace("benchmarkmode.", "")
    draft = output.draft(
        table.line,
        variant=mode,
        version=str(output.facts.get("tensorflow", "")),
        metrics=_metrics(output, table),
        parameters={**output.facts, "steps": table.last_step or table.steps},
        warnings=table.rates.warnings("images/sec"),
        stops=[output.block.take_trouble(), *output.stops],
    )
    if table.steps:
        draft.warnings.append("images/sec of a step line is the running mean, not the rate of one step")
    if table.rates.count:
        draft.samples["images_per_second"] = table.rates.series()
    draft.samples |= {name: samples.series() for name, samples in table.extra.items()}
    if sum(table.steps > 0 for table in output.tables) > 1:
        draft.warnings.append("tables without rank labels interleave: steps and totals are matched in their order")
    _judge(draft, output, table)
    return draft.run()


def _judge(draft: Draft, output: _Output, table: _Table) -> None:
    total = table.total
    if total is None and table.accuracy is None:
        where = f"after step {table.last_step}" if table.steps else "before the first step"
        draft.mark_truncated(where, lacks=", without a total")
    if total is not None and number(total[2]) is None:
        draft.mark_invalid(f"the total is {total[2]}")
    if total is not None and number(total[2]) == 0:
        draft.mark_invalid("the total is 0: no step was measured")
    loss = next((s for n, s in table.extra.items() if "loss" in n), None)
    for what, samples in (("images/sec", table.rates), ("loss", loss)):
        if samples is not None and samples.broken:
            draft.mark_invalid(f"{what} is {samples.broken} in a step")
    draft.mark_impossible(metric for metric in draft.metrics if "loss" not in metric.name)
    draft.mark_invalid(_compare(output, table))


def _compare(output: _Output, table: _Table) -> str:
    total = table.total
    planned = output.facts.get("num_batches")
    if total is None or not table.rates.count:
        return ""
    mean, printed = number(table.rates.last), number(total[2])
    whole = isinstance(planned, int) and table.last_step == planned
    workers = output.facts.get("variables", "")
    if whole and mean and printed and workers not in ("horovod", "distributed_replicated"):
        if abs(mean - printed) > _AGREEMENT * max(mean, printed):
            last = table.rates.last
            return f"the total is {total[2]}, but the mean of all {planned} steps {last}"
    elif isinstance(planned, int) and table.last_step > planned:
        return f"step {table.last_step} of {planned} batches"
    return ""
