"""What other session options than the equal ones do to a runtime."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.serving import changed_settings
from transect.report.engine.blocks import Part, digits, table, words
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.text import clean, in_unit, with_ends
from transect.report.topics.serving.overhead import setting_words


def option_table(context: Context) -> Iterator[Part]:
    """List runs with other session options than the equal ones, beside the same runtime with those."""
    pairs = context.contrasts.of("overhead.ffi-overhead")
    for workload, members in sorted(grouped(pairs, lambda pair: str(pair.group.cell.workload)).items()):
        members.sort(key=lambda pair: (str(pair.group.cell.get("runtime")), pair.group.cell.id))
        caption = f"{workload}: other session options, beside the same runtime with equal ones"
        yield table(
            members,
            [
                labelled(members, "Runtime and options", always=("threads", "batch")),
                words("Changed", _changed),
                medians("Latency", "latency", in_unit("s")),
                digits("Times equal", lambda pair: pair.ratio, with_ends),
                digits("Runs", lambda pair: pair.pairs),
                words("", verdict_chip),
            ],
            caption=caption,
            fold_title=caption,
        )


def _changed(pair: Contrast) -> str:
    differing = changed_settings(pair.group, pair.base)
    return "not told" if differing is None else clean(setting_words(differing)) or "nothing"
