"""Builds the report of one study: report.html, records.parquet and summary.json."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from transect.analysis.load import by_status, load_records
from transect.analysis.table import records_table
from transect.domain.files import write_atomic
from transect.report.context import Context
from transect.report.findings import Finding, all_findings
from transect.report.sections import all_sections

__all__ = ["build_report", "script_json"]

_TEMPLATES = Path(__file__).parent / "templates"


def build_report(
    results: Path,
    output: Path,
    *,
    title: str,
    questions: Sequence[str],
    published: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Read `results/STUDY/` and write the report to `output`, atomically; return the summary.

    Beside `output` go `records.parquet`, a row per record and metric, and `summary.json`.
    Missing, failed and skipped cells are shown, and unreadable records listed as problems: none
    of them raises. Equal records give equal bytes. Raises OSError when nothing can be written.
    """
    loaded = load_records(results)
    context = Context(loaded, title=title, questions=questions, published=published)
    findings = all_findings(context)
    sections = all_sections(context)
    summary = _summary(context, findings)
    parquet = io.BytesIO()
    records_table(loaded.records).to_parquet(parquet, index=False)
    write_atomic(output.parent / "records.parquet", parquet.getvalue())
    text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    write_atomic(output.parent / "summary.json", text)
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            study=context.study,
            questions=context.questions,
            counts=summary["counts"],
            problems=len(context.problems),
            findings=_grouped(findings),
            sections=sections,
            style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 our own file
            script=Markup(script),  # noqa: S704 our own file
            script_hash=Markup(_hash(script)),  # noqa: S704 base64
            summary_json=script_json(summary),
        )
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


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _grouped(findings: Sequence[Finding]) -> list[tuple[str, list[tuple[str, Finding]]]]:
    """Gather findings by what they are about: workloads first, the study itself last."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.about, []).append(finding)
    last = ("equality", "export", "study")
    names = {"equality": "Right results", "export": "Exports", "study": "This study"}
    order = sorted(groups, key=lambda name: last.index(name) if name in last else -1)
    return [
        (names.get(name, name), [(_under(name, one.text), one) for one in groups[name]])
        for name in order
    ]


def _under(heading: str, text: str) -> str:
    """Drop from a sentence the name that stands above it already."""
    rest = text.removeprefix(f"{heading}: ").removeprefix(f"{heading} ")
    # Names of frameworks keep their small letters; words that begin a sentence do not.
    plain = ("computing", "communication", "loading", "going", "no", "on", "the", "with",
             "waiting", "what", "all", "decoding", "input")  # fmt: skip
    return rest[:1].upper() + rest[1:] if rest.split(" ")[0] in plain else rest


def _summary(context: Context, findings: Sequence[Finding]) -> dict[str, Any]:
    stages = sorted({record.stage for record in context.records})
    return {
        "study": context.study,
        "counts": by_status(context.records),
        "by_stage": {
            stage: by_status(record for record in context.records if record.stage == stage)
            for stage in stages
        },
        "findings": [
            {
                "text": finding.text,
                "evidence": finding.evidence,
                "sureness": finding.sureness.value,
                "kind": finding.kind,
                "about": finding.about,
            }
            for finding in findings
        ],
        "failures": [
            {
                "cell": record.cell_id,
                "stage": record.stage,
                "status": record.status.value,
                "cause": record.cause.value if record.cause else None,
                "message": record.message,
            }
            for record in context.not_ok()
        ],
        "problems": [str(problem) for problem in context.problems],
    }
