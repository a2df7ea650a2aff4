"""What every finding and section is made from: one study, read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from transect.analysis.bounds import Rates
from transect.analysis.contrasts import Contrasts
from transect.analysis.entries import AnyRecord, Key
from transect.analysis.extrapolation import Curve, curves
from transect.analysis.groups import Floors, Group, group_records, grouped
from transect.analysis.hardware import BenchmarkValue, benchmark_values
from transect.analysis.labels import settings_of
from transect.analysis.load import Loaded, Problem
from transect.analysis.network import NetworkFit, network_fits
from transect.analysis.originals import Originals
from transect.domain.cell import Cell
from transect.domain.claims import Work
from transect.domain.record import Status
from transect.domain.study import Question
from transect.domain.system import SystemPrice
from transect.domain.until import AnalysisPlan
from transect.planning.pairs import pairs_among
from transect.report.engine.charts.theme import Style, Styles

# The thesis on tickets, as studies call it: its claims are on runtimes, retraining and classifiers.
THESIS = "ONNX thesis"


class Context:
    """One study's records, grouped, with its noise floors, bounds and series styles.

    Everything is computed when it is first used: a record that breaks a computation breaks only the sections that use
    it.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        title: str,
        questions: Sequence[str | Question] = (),
        works: Sequence[Work] = (),
        since: Mapping[str, str] | None = None,
        analysis_plan: AnalysisPlan | None = None,
    ) -> None:
        self.title = title
        self.questions = [
            ask if isinstance(ask, Question) else Question.model_construct(ask=ask, answered_by=[]) for ask in questions
        ]
        self.works, self.since = list(works), since
        self.analysis_plan = analysis_plan or AnalysisPlan()
        # What a node costs, where the system says that.
        self.price: SystemPrice | None = None
        self.loaded = loaded
        self.study = loaded.study
        self.records: list[AnyRecord] = loaded.records
        self.problems = loaded.problems
        self.originals = Originals(loaded.results, loaded.problems)

    def fault(self, where: str, what: str, error: BaseException) -> str:
        """Note as a problem that a part of the report could not be made; return what is said of it."""
        text = f"{what}: {type(error).__name__}: {error}"
        self.problems.append(Problem(where=where, what=text))
        return text

    @cached_property
    def stages(self) -> list[str]:
        """Stages that there are records of, sorted."""
        return sorted({record.stage for record in self.records})

    @cached_property
    def groups(self) -> dict[str, list[Group]]:
        """Groups by stage."""
        of_stage = grouped(self.records, lambda record: record.stage)
        return {stage: group_records(of_stage[stage]) for stage in self.stages}

    @cached_property
    def floors(self) -> Floors:
        """Noise floors of all stages; once the planned pairs are evaluated, also theirs."""
        return Floors((group for groups in self.groups.values() for group in groups), self.analysis_plan.margin)

    @cached_property
    def contrasts(self) -> Contrasts:
        """The planned pairs, each evaluated once; of a plan without any, those that its cells would make."""
        pairs = self.analysis_plan.pairs or pairs_among(
            (record.cell for record in self.records), lambda rules: self.asks(*rules)
        )
        return Contrasts(
            pairs, (group for groups in self.groups.values() for group in groups), self.floors, self.pending
        )

    @property
    def pending(self) -> list[Key]:
        """The cells of the study that are at work now, have not begun, or whose record cannot be read."""
        places = (problem.where.partition("/") for problem in self.loaded.unreadable)
        return [*self.loaded.running, *self.loaded.waiting, *((stage, cell) for stage, _, cell in places)]

    def asks(self, *rules: str) -> bool:
        """Whether a question of the study names one of these rules; all are asked where no question names any."""
        return not self._named or self._names(rules)

    @cached_property
    def _named(self) -> list[str]:
        return [rule for question in self.questions for rule in question.answered_by]

    def _names(self, rules: Iterable[str]) -> bool:
        return any(fnmatchcase(rule, name) for rule in rules for name in self._named)

    @cached_property
    def rates(self) -> Rates:
        """Peak rates of the machine."""
        return Rates(self.records)

    @cached_property
    def benchmark_values(self) -> list[BenchmarkValue]:
        """Every number of every benchmark that ran here or was read from a log."""
        return benchmark_values(self.records)

    @cached_property
    def network_fits(self) -> list[NetworkFit]:
        """The alpha-beta models of all network probes."""
        return network_fits(self.records)

    @cached_property
    def curves(self) -> list[Curve]:
        """Every stored prediction, extrapolated to more ranks than anybody has; simulated once for a report."""
        return curves(self.of("forecast"), self.of("profile"), self.originals)

    @cached_property
    def styles(self) -> Styles:
        """Colours, shapes and dashes of all series."""
        cells = [group.cell for groups in self.groups.values() for group in groups]
        return Styles(
            [name for cell in cells if (name := _hue(cell))], [_variant(cell) for cell in cells if cell.get("strategy")]
        )

    def asks_for(self, work: str, *rules: str, section: str = "") -> bool:
        """Whether the study compares itself with a published work.

        It does where it names the work, by what reports call it, or a question names one of the `rules` that decide its
        claims, or the section that shows them. The report speaks of no other work.
        """
        shown = (key for question in self.questions for key in question.shown_in)
        return any(known.short == work for known in self.works) or self._names(rules) or section in shown

    @cached_property
    def _by_workload(self) -> dict[tuple[str, str | None], list[Group]]:
        every = (group for groups in self.groups.values() for group in groups)
        return grouped(every, lambda group: (group.cell.stage, group.cell.workload))

    def of(self, stage: str, workload: str | None = None) -> list[Group[Any]]:
        """Return a stage's groups, whose cells are of its class; of one workload when given."""
        if workload is None:
            return self.groups.get(stage, [])
        return self._by_workload.get((stage, workload), [])

    def workloads(self, stage: str) -> list[str]:
        """Return the workloads that a stage has cells for, sorted."""
        return sorted(workload for known, workload in self._by_workload if known == stage and workload)

    def style(self, group: Group) -> Style:
        """Return the style of a group's series."""
        return self.styles.get(_hue(group.cell), _variant(group.cell))

    @cached_property
    def not_ok(self) -> list[AnyRecord]:
        """Failed records, then skipped ones, each in order of stage and cell."""
        bad = [record for record in self.records if record.status is not Status.OK]
        return sorted(bad, key=lambda r: (r.status is Status.SKIPPED, r.stage, r.cell_id))


def _hue(cell: Cell) -> str | None:
    """What has a colour of its own: a framework, a runtime, a kernel's programming model, or a benchmark."""
    model = settings_of(cell).get("implementation")
    return cell.get("runtime") or cell.get("framework") or (str(model) if model else cell.get("benchmark"))


def _variant(cell: Cell) -> str:
    """What tells series of one framework apart: the strategy, and a network that was named."""
    return " ".join(part for part in (cell.get("strategy"), cell.network) if part)
