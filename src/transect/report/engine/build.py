"""Builds the report of one study: report.html, records.parquet and summary.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from transect.domain.errors import FAULTS
from transect.domain.files import write_atomic
from transect.report.engine import shell
from transect.report.engine.blocks import sureness
from transect.report.engine.collect import MadeSection, broken, glossary
from transect.report.engine.context import Context
from transect.report.engine.page import shortened
from transect.report.engine.report import Made, make_all

# Cells of one finding that the page names in a command; summary.json has all of them.
MAX_NAMED = 40


def build_report(results: Path, output: Path, **how: Any) -> dict[str, Any]:
    """Read `results/STUDY/` and write the report to `output`, atomically; return the summary.

    The arguments are those of `make_all`. Beside `output` go `records.parquet`, a row per record and metric, and
    `summary.json`. Equal records give equal bytes. Raises OSError when nothing can be written.
    """
    made = make_all(results, **how)
    write_page(made, output)
    return made.summary


def write_page(made: Made, output: Path) -> None:
    """Write the page, and records.parquet and summary.json beside it; raises OSError."""
    context, templates = made.context, shell.templates()
    templates.globals["source"] = made.source
    pictures = [_render(templates, section, context) for section in made.pictures]
    rendered = [(section, _render(templates, section, context)) for section in made.shown]
    table = output.parent / "records.parquet"
    if made.table is None:
        table.unlink(missing_ok=True)
    else:
        write_atomic(table, made.table)
    rendered = [(section, _render(templates, section, context)) for section in made.made_last] + rendered
    if words := glossary([html for _, html in rendered], context):
        # Of the words that all the others use.
        rendered.append((words, _render(templates, words, context)))
    summary = made.summary
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    write_atomic(output.parent / "summary.json", text.encode("utf-8", errors="replace"))
    page = templates.get_template("report.html.j2").render(
        title=context.title,
        study=context.study,
        front=shortened(made.front),
        pictures=pictures,
        slide=base64.b64encode(made.slide.encode("utf-8", "replace")).decode(),
        most_named=MAX_NAMED,
        sureness=sureness,
        titles={section.key: section.title for section, _ in rendered},
        pending=summary["pending"],
        sections=rendered,
    )
    # A lone surrogate cannot be written as UTF-8; it may come from a log.
    write_atomic(output, page.encode("utf-8", errors="replace"))


def _render(templates: Environment, made: MadeSection, context: Context) -> Markup:
    """Turn a section's body into HTML; one that no template takes says so."""
    template = templates.get_template("section.html.j2")
    try:
        text = template.render(body=made.body)
    except FAULTS as error:  # a stage's report.py is anybody's code; the report has to come
        text = template.render(body=broken(made.key, error, context))
    return Markup(text)  # noqa: S704 escaped by the template
