"""The parts of a made report in the order of the page, for formats that take them one by one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from transect.report.engine.blocks import Chart, Charts, Failure, Heading, Table
from transect.report.engine.collect import MadeSection
from transect.report.engine.report import Made


def charts(made: Made) -> Iterator[tuple[str, Chart]]:
    """Yield every chart after the name of its files, `SECTION/NAME`; the same records give the same names."""
    for folder, section in sections(made):
        names = Names()
        for block in section.body.blocks:
            for chart in block.items if isinstance(block, Charts) else ():
                yield f"{folder}/{names.of(chart.name or chart.title)}", chart


def tables(made: Made) -> Iterator[tuple[str, str, Table]]:
    """Yield every table, those behind charts too, after the name of its file and what stands above it."""
    for folder, section in sections(made):
        names, above = Names(), section.title
        for block in section.body.blocks:
            found: list[tuple[str, str, Table]] = []
            if isinstance(block, Heading):
                above = block.text
            elif isinstance(block, Table):
                title = block.caption or block.folded or above
                found = [(title, title, block)]
            elif isinstance(block, Charts):
                found = [(chart.name or chart.title, chart.title, chart.table) for chart in block.items]
            elif isinstance(block, Failure):
                found = [(f"{block.cause} messages", f"{block.cause}: {block.amount}", block.messages)]
            for name, title, table in found:
                yield f"{folder}/{names.of(name)}", f"{section.title}: {title}", table


def sections(made: Made) -> Iterator[tuple[str, MadeSection]]:
    """Yield every section with the folder of its files: a plug-in's key may be anything."""
    folders = Names()
    for section in made.every:
        yield folders.of(section.key), section


_MAX_LENGTH = 80


def slug(text: str) -> str:
    """Return a name of lower-case letters, digits and single dashes; `unnamed` when nothing is left.

    >>> slug("Time to accuracy 0.95, 2 ranks"), slug("../../etc"), slug("<b>")
    ('time-to-accuracy-0-95-2-ranks', 'etc', 'b')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return words[:_MAX_LENGTH].rstrip("-") or "unnamed"


class Names:
    """Gives every thing a name that nothing else has: of two with one name the second gets `-2`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """Return the name for a text; called in the order of the report, so it is the same each time."""
        base = name = slug(text)
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name
