"""A run as a parser puts it together, and the one ladder from `ok` to `invalid` by which it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Parameter, Run, RunStatus, Series
from transect.hpc.block import Block
from transect.hpc.values import impossible, log_metric


@dataclass(kw_only=True, slots=True)
class Draft:
    """A run that a parser is still building.

    A parser calls the `mark_` methods in the order that suits its benchmark, and the first that applies
    decides: `mark_invalid` (the log refutes its result), `mark_truncated` and `mark_incomplete` (something is missing:
    `failed` with the words of what stopped the program, else `truncated`), `mark_no_result` (`no-result`). Where none
    applied the run is `ok`. `stops` are messages that the parser found itself; those of launchers and schedulers come
    from the block, and are read only on demand: passing runs have such lines too.
    """

    block: Block
    line: int
    benchmark: str = ""  # empty: that of the block's parser
    variant: str = ""
    version: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)
    metrics: list[LogMetric] = field(default_factory=list)
    samples: dict[str, Series] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    suspicions: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    status: RunStatus = RunStatus.OK
    reason: str = ""
    _stop: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing has decided against it."""
        return self.status is RunStatus.OK

    @property
    def stop(self) -> str:
        """What stopped the program, as the log says it; empty when it does not."""
        if self._stop is None:
            self._stop = "; ".join(reason for reason in (*self.stops, self.block.take_trouble()) if reason)
        return self._stop

    def add_metric(
        self, name: str, printed: str | None, unit: str, direction: Direction | None = None, **facts: Any
    ) -> LogMetric | None:
        """Add a metric from the digits of the log, and return it; None where they are no finite number.

        `facts` as for `log_metric`.
        """
        metric = log_metric(name, printed or "", unit, direction, **facts)
        if metric is not None:
            self.metrics.append(metric)
        return metric

    def set_status(self, status: RunStatus, reason: str) -> None:
        """Decide, unless it is decided."""
        if self.ok:
            self.status, self.reason = status, reason

    def mark_invalid(self, why: str | None) -> None:
        """Call it invalid when there is a reason why."""
        if why:
            self.set_status(RunStatus.INVALID, why)

    def mark_impossible(
        self, metrics: Iterable[LogMetric] | None = None, why: Callable[[LogMetric], str | None] = impossible
    ) -> None:
        """Call it invalid for its first value that cannot be."""
        if self.ok:
            values = self.metrics if metrics is None else metrics
            self.mark_invalid(next((reason for metric in values if (reason := why(metric)) is not None), None))

    def mark_truncated(self, where: str, lacks: str = "") -> None:
        """Say where the log breaks off: `stopped WHERE` by something, or it only ends there."""
        if not self.ok:
            return
        if self.stop:
            self.set_status(RunStatus.FAILED, f"stopped {where}: {self.stop}")
        else:
            end = f"ends {where}{lacks}, with: {self.block.last_words()}"
            self.set_status(RunStatus.TRUNCATED, end)

    def mark_cut(self, where: str) -> None:
        """Say where the log breaks off, whatever stopped the program."""
        self.set_status(RunStatus.TRUNCATED, f"{where}, with: {self.block.last_words()}")

    def mark_incomplete(self, what: str) -> None:
        """Say what is missing, and what stopped the program or how the log ends."""
        if not self.ok:
            return
        if self.stop:
            self.set_status(RunStatus.FAILED, f"{what}: {self.stop}")
        else:
            end = f"the log ends with: {self.block.last_words()}"
            self.set_status(RunStatus.TRUNCATED, f"{what}: {end}")

    def warn_stop(self, when: str) -> None:
        """Warn of what stopped the program of a run that is ok all the same."""
        if self.ok and self.stop:
            self.warnings.append(f"{when}: {self.stop}")

    def mark_no_result(self, why: str) -> None:
        """Say why there is nothing to read a result from."""
        self.set_status(RunStatus.NO_RESULT, why)

    def run(self) -> Run:
        """Return what has become of it."""
        if not self.metrics:
            self.mark_no_result("no number of a result is in it")
        return Run(
            file=self.block.file,
            line=self.line,
            benchmark=self.benchmark or self.block.benchmark,
            variant=self.variant,
            version=self.version,
            status=self.status,
            reason=self.reason,
            parameters=self.parameters,
            metrics=self.metrics,
            samples=self.samples,
            warnings=self.warnings,
            suspicions=self.suspicions,
        )
