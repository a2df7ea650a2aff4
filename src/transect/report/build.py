"""Builds the report of one study: report.html, records.parquet and summary.json."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from transect.analysis.load import Key, Problem, by_status, load_records
from transect.analysis.table import write_parquet
from transect.domain.errors import FAULTS
from transect.domain.files import write_atomic
from transect.domain.study import Question
from transect.domain.until import Aims
from transect.report.answers import unknown_rules
from transect.report.context import Context
from transect.report.findings.deciding import tally_of
from transect.report.findings.finding import Finding
from transect.report.making import (
    FAILURES,
    MadeSection,
    all_parts,
    broken,
    make_findings,
    make_section,
)
from transect.report.page import Front, front, front_facts

__all__ = ["build_report", "script_json"]

_TEMPLATES = Path(__file__).parent / "templates"

# In the order in which the page has them: what comes later may rely on what came before.
_STYLES = ("page.css", "explore.css")
_SCRIPTS = ("page.js", "explore.js")

# Failures and problems that the page carries as data; summary.json beside it has all of them.
_MOST_INLINED = 500


def build_report(
    results: Path,
    output: Path,
    *,
    title: str,
    questions: Sequence[str | Question],
    published: Sequence[dict[str, Any]] = (),
    planned: Collection[Key] | None = None,
    only: Collection[str] | None = None,
    aims: Aims | None = None,
    again: Sequence[str] = (),
) -> dict[str, Any]:
    """Read `results/STUDY/` and write the report to `output`, atomically; return the summary.

    `planned` holds the (stage, cell id) of each cell that the study asks for: records of other
    cells are listed apart and stand in no count, finding or chart, and cells without a record are
    running or not there yet. None: every record counts. `only`: keys of the sections to make. `aims`: within
    which margin cells are the same. `again`: what follows `transect run` in a command on this study, its name or file
    and options; without any its name.

    Beside `output` go `records.parquet`, a row per record and metric, and `summary.json`.
    Missing, failed and skipped cells are shown, and unreadable records listed as problems; a part
    of the report that cannot be made says so in its place: none of them raises. Equal records give
    equal bytes. Raises OSError when nothing can be written.
    """
    loaded = load_records(results, planned)
    context = Context(loaded, title=title, questions=questions, published=published, aims=aims)
    parts = all_parts()
    context.problems += parts.problems
    findings = make_findings(context, parts.findings)
    makers = {maker.name for maker in parts.findings}
    for ask, rule in unknown_rules(context.questions, makers):
        what = f"'{rule}' is no rule of this report, expected one of {', '.join(sorted(makers))}"
        context.problems.append(Problem(where=f"question '{ask}'", what=what))
    first = front(context, parts.columns, findings, again or (context.study,))
    templates = _templates()
    rendered = [
        (made, _render(templates, made, context))
        for section in parts.sections
        if (only is None or section.key in only)
        and (made := make_section(section, context)) is not None
    ]
    _write_parquet(context, output.parent / "records.parquet")
    failures = make_section(FAILURES, context)
    if failures is not None and (only is None or FAILURES.key in only):
        rendered.insert(0, (failures, _render(templates, failures, context)))
    summary = _summary(context, findings, first)
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    write_atomic(output.parent / "summary.json", text.encode("utf-8", errors="replace"))
    scripts = [_own(name) for name in _SCRIPTS]
    page = templates.get_template("report.html.j2").render(
        title=title,
        study=context.study,
        front=first,
        titles={made.key: made.title for made, _ in rendered},
        counts=summary["counts"],
        pending=summary["pending"],
        problems=len(context.problems),
        said=Counter(finding.section for finding in findings),
        sections=rendered,
        styles=[_own(name) for name in _STYLES],
        scripts=scripts,
        script_hashes=[Markup(_hash(script)) for script in scripts],  # noqa: S704 base64
        summary_json=script_json(_inlined(summary)),
    )
    # A lone surrogate cannot be written as UTF-8; it may come from a log.
    write_atomic(output, page.encode("utf-8", errors="replace"))
    return summary


def script_json(value: Any) -> Markup:
    """Serialise for a script element: nothing in it can end the element or a line.

    >>> str(script_json({"a": "</script>\\u2028"}))
    '{"a": "\\\\u003c/script\\\\u003e\\\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 escaped above


def _own(name: str) -> Markup:
    """Read a style sheet or script of our own, which goes into the page as it is."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 our own file


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()


def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(templates: Environment, made: MadeSection, context: Context) -> Markup:
    """Turn a section's body into HTML; one that no template takes says so."""
    template = templates.get_template("section.html.j2")
    try:
        text = template.render(body=made.body)
    except FAULTS as error:  # a stage's report.py is anybody's code; the report has to come
        text = template.render(body=broken(made.key, error, context))
    return Markup(text)  # noqa: S704 escaped by the template


def _write_parquet(context: Context, path: Path) -> None:
    stream = io.BytesIO()
    try:
        write_parquet(context.records, stream)
    except Exception as error:  # as for a section
        what = f"could not be made: {type(error).__name__}: {error}"
        context.problems.append(Problem(where=path.name, what=what))
        path.unlink(missing_ok=True)
    else:
        write_atomic(path, stream.getvalue())


def _summary(context: Context, findings: Sequence[Finding], first: Front) -> dict[str, Any]:
    loaded = context.loaded
    by_stage: dict[str, Counter[str]] = defaultdict(Counter)
    for record in context.records:
        by_stage[record.stage][record.status.value] += 1
    return {
        "study": context.study,
        "counts": by_status(context.records),
        "pending": {"running": len(loaded.running), "waiting": len(loaded.waiting)},
        "comparisons": asdict(tally_of(findings)),
        "by_stage": {stage: {**by_status(()), **by_stage[stage]} for stage in context.stages},
        **front_facts(first),
        "failures": [
            {
                "cell": record.cell_id,
                "stage": record.stage,
                "status": record.status.value,
                "cause": record.cause.value if record.cause else None,
                "message": record.message,
            }
            for record in context.not_ok
        ],
        "running": ["/".join(key) for key in loaded.running],
        "without_record": ["/".join(key) for key in (*loaded.running, *loaded.waiting)],
        "unreadable": [str(problem) for problem in loaded.unreadable],
        "earlier": ["/".join(key) for key in loaded.earlier],
        "problems": [str(problem) for problem in context.problems],
    }


def _inlined(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the summary with long lists cut: thousands of failures are data, and no page."""
    return {
        key: value[:_MOST_INLINED] if isinstance(value, list) else value
        for key, value in summary.items()
    }
