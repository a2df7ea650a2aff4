"""Every chart as a file of its own, in SVG and PDF, ready for a paper.

The drawings are those of the page, on white and in its light colours. A PDF holds the glyphs that it uses
(Liberation Sans, which vl-convert brings along); an SVG names that font first, then Arial and Helvetica, which
have the same widths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import vl_convert
from markupsafe import escape

from transect.report.engine.blocks import Chart, LegendItem
from transect.report.engine.charts.inks import INK, MUTED, PAPER
from transect.report.engine.charts.slide import wrapped
from transect.report.engine.charts.theme import colors
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._walk import charts
from transect.report.engine.report import Made
from transect.report.engine.text import clean

FONTS = "Liberation Sans, Arial, Helvetica, sans-serif"

_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_VARIABLE = re.compile(r"var\((--[a-z-]+)\)")
# What only the page's scripts and its readers' programs use.
_PAGE_ONLY = re.compile(r' (?:data-[\w-]+|tabindex|class|role)="[^"]*"')
_WEIGHT = re.compile(r' font-weight="[^"]*"')
# `<<`, then a line for each name and the object that it stands for.
_RESOURCES = re.compile(rb"(<<\n)((?:[ ]+/\w+ \d+ 0 R\n){2,})")
_FONT_PX, _SOURCE_PX = 11.0, 8.5
# Liberation Sans is about this wide on average, in parts of its size; a legend has to be laid out without it.
_WIDTH_OF_LETTER = 0.56
_ROW_PX, _GAP_PX, _SAMPLE_PX, _MARGIN_PX = 16.0, 14.0, 34.0, 4.0


@REPORT_FORMATS.register("figures")
class Figures(ReportFormat):
    """Every chart as SVG and PDF, one pair of files each, by section; and one page for a slide as SVG and PNG."""

    place = "figures/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Draw them; one that cannot be drawn is named."""
        files: dict[str, bytes] = {}
        left_out = []
        for name, chart in charts(made):
            try:
                svg = standalone(chart, made.source)
                pdf = pdf_of(svg)
            except Exception as error:  # of a plug-in's drawing; the others have to come
                left_out.append(f"{name}: {type(error).__name__}: {error}")
                continue
            files[f"{name}.svg"] = svg.encode("utf-8", "replace")
            files[f"{name}.pdf"] = pdf
        if made.slide:
            # A slide takes two pixels for one.
            png = vl_convert.svg_to_png(made.slide, scale=2)
            files |= {"summary.svg": made.slide.encode("utf-8", "replace"), "summary.png": png}
        return Contents(files=files, left_out=left_out)


def pdf_of(svg: str) -> bytes:
    """Return the PDF of a drawing that stands alone; equal drawings give equal bytes."""
    # Two fonts come in any order, each with hundreds of objects: a PDF has one.
    return in_one_order(vl_convert.svg_to_pdf(_WEIGHT.sub("", svg)))


def in_one_order(pdf: bytes) -> bytes:
    """Return a PDF whose lists of resources are sorted: the converter writes them in any order.

    Each list takes the bytes that it took before, so that places in the file stay right.
    """
    return _RESOURCES.sub(lambda match: match[1] + b"".join(sorted(match[2].splitlines(keepends=True))), pdf)


def standalone(chart: Chart, source: str = "") -> str:
    """Return a chart's drawing with its legend, and beneath it the source of its numbers, as an SVG that needs no page.

    Raises ValueError for one that is no SVG of ours.
    """
    drawing = str(chart.svg)
    box = _BOX.search(drawing)
    if box is None or not drawing.rstrip().endswith("</svg>"):
        raise ValueError("the drawing has no size")
    width, height = float(box[1]), float(box[2])
    body = drawing[drawing.index(">") + 1 : drawing.rindex("</svg>")]
    top, legend = _legend(chart.legend, width)
    lines = wrapped(clean(source), _SOURCE_PX, width - 2 * _MARGIN_PX)
    high = height + top + len(lines) * _SOURCE_PX * 1.3 + (_MARGIN_PX if lines else 0.0)
    beneath = "".join(
        f'<text x="{_MARGIN_PX:g}" y="{height + top + (place + 1) * _SOURCE_PX * 1.3:g}" font-size="{_SOURCE_PX:g}" '
        f'fill="{MUTED}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    page = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{high:g}" '
        f'viewBox="0 0 {width:g} {high:g}" font-family="{FONTS}" font-size="{_FONT_PX:g}">'
        f"<title>{escape(clean(chart.title))}</title>"
        f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        f'{legend}<g transform="translate(0,{top:g})">{body}</g>{beneath}</svg>\n'
    )
    # Tags alone: a variable in a label stays what it says.
    return re.sub(r"<[^>]*>", lambda match: _tag(match.group()), page)


def _tag(tag: str) -> str:
    known = colors()
    tag = _VARIABLE.sub(lambda match: known.get(match[1], INK), _PAGE_ONLY.sub("", tag))
    # As in the page: what lies behind a word does not run through it.
    return tag.replace("<text ", f'<text paint-order="stroke" stroke="{PAPER}" stroke-width="3" ', 1)


def _legend(items: Sequence[LegendItem], width: float) -> tuple[float, str]:
    """Lay out a legend in rows of at most `width`; return its height and its SVG."""
    x, y, parts = _MARGIN_PX, _MARGIN_PX, []
    for item in items:
        text = clean(item.text)
        takes = _SAMPLE_PX + len(text) * _FONT_PX * _WIDTH_OF_LETTER + _GAP_PX
        if x > _MARGIN_PX and x + takes > width:
            x, y = _MARGIN_PX, y + _ROW_PX
        sample = str(item.svg)
        inner = sample[sample.index(">") + 1 : sample.rindex("</svg>")]
        parts.append(
            f'<g transform="translate({x:g},{y:g})">{inner}'
            f'<text x="{_SAMPLE_PX:g}" y="11" fill="{INK}">{escape(text)}</text></g>'
        )
        x += takes
    return (y + _ROW_PX + _MARGIN_PX, "".join(parts)) if parts else (0.0, "")
