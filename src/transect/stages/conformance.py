"""The conformance stage: runtimes run ONNX's own operator tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Annotated, Any

from pydantic import Field

from transect.domain.axes.export import ConformanceCell, NodeTestsCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.domain.study import Section, typed
from transect.domain.takes import Takes
from transect.onnx_models.node_tests import ARCHIVE
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage
from transect.runtimes import PROVIDERS, RUNTIMES, check_providers
from transect.runtimes.conformance import check_runtime


class ConformanceSection(Section):
    """ONNX's operator tests: by which runtimes."""

    runtimes: Annotated[list[str], typed(RUNTIMES.named)] = Field(
        default=[], description="names from [plugins.md](plugins.md#runtime) that take ONNX models"
    )
    providers: list[str] = Field(
        default=["cpu"], min_length=1, description=f"{', '.join(PROVIDERS)}; each with every runtime"
    )
    only: str = Field(default="*", description="tests whose name matches this pattern, e.g. `test_conv_*`")


@STAGES.register("conformance")
class Conformance(Stage[ConformanceCell]):
    """Runs ONNX's operator tests through the runner contract."""

    payload = "transect.payloads.conformance:conformance"
    takes = {"tests": Takes(ARCHIVE)}
    key = "conformance"
    section = ConformanceSection
    needs = ("onnx-node-tests",)

    def check(self, section: ConformanceSection, context: Context) -> None:
        """Runtimes are there, and take ONNX models."""
        for name in section.runtimes:
            with context.naming():
                check_runtime(name, context.where("conformance.runtimes"))
        with context.naming():
            check_providers(section.providers, context.where("conformance.providers"))
        if section.only != "*" and not section.runtimes:
            raise BadInput(f"{context.where('conformance.only')}: gives no cell without `runtimes`")

    def cells(self, section: ConformanceSection, context: Context) -> Iterable[ConformanceCell]:
        """Every runtime on every provider."""
        for runtime, provider in product(section.runtimes, section.providers):
            yield ConformanceCell(runtime=runtime, provider=provider)

    def inputs(self, cell: ConformanceCell, context: Context) -> dict[str, Cell]:
        """The tests."""
        return {"tests": NodeTestsCell()}

    def plugins(self, cell: ConformanceCell) -> list[tuple[Registry[Any], str]]:
        """The runtime."""
        return [(RUNTIMES, cell.runtime)]

    def spec(self, cell: ConformanceCell, context: Context) -> dict[str, Any]:
        """Which of the tests."""
        return {"only": context.section("conformance").only}

    def environment(self, cell: ConformanceCell) -> str:
        """The runtime's."""
        return RUNTIMES.get(cell.runtime).environment

    def programs(self, cell: ConformanceCell) -> Mapping[str, str]:
        """The runner, which is started again after a crash."""
        return {"runner": self.environment(cell)}
