"""A parser in one file."""

from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Normalised, Run, RunStatus
from transect.hpc.block import Block


@PARSERS.register("extra-benchmark")
class ExtraParser:
    """Reads `EXTRA BENCH: 12.5 GB/s`."""

    benchmark = "extra-benchmark"
    description = "a benchmark that only this test knows"
    starts = (r"EXTRA BENCH: ",)
    wants = None
    contains = frozenset()

    def sniff(self, line) -> bool:
        return True

    def parse(self, block: Block) -> Iterator[Run]:
        printed = block.first.text.split(":")[1].split()[0]
        value = float(printed)
        yield Run(
            file=block.file,
            line=block.first.number,
            benchmark=self.benchmark,
            status=RunStatus.OK,
            metrics=[
                LogMetric(
                    name="bandwidth",
                    value=value,
                    printed=printed,
                    unit="GB/s",
                    direction=Direction.HIGHER,
                    normalised=Normalised(name="memory_bandwidth", value=value * 1e9, unit="B/s"),
                )
            ],
        )
