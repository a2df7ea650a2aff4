"""A parser in one file."""

from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft


@PARSERS.register("extra-benchmark")
class ExtraParser(Parser):
    """Reads `EXTRA BENCH: 12.5 GB/s`."""

    benchmark = "extra-benchmark"
    description = "a benchmark that prints its bandwidth in one line"
    start_patterns = (r"EXTRA BENCH: ",)
    line_patterns = (r"EXTRA BENCH: ",)

    def parse(self, block: Block) -> Iterator[Run]:
        for line in block:
            draft = Draft(block=block, line=line.number)
            printed = line.text.removeprefix("EXTRA BENCH: ").removesuffix(" GB/s")
            if draft.add_metric("bandwidth", printed, "GB/s", Direction.HIGHER, registered="memory_bandwidth") is None:
                draft.mark_invalid(f"no number: {printed}")
            yield draft.run()
