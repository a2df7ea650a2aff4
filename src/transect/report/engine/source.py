"""Whose numbers a picture shows, and of when: one line beneath it."""

from __future__ import annotations

from transect.analysis.entries import inside
from transect.report.engine.banner import date, machines
from transect.report.engine.context import Context
from transect.report.engine.text import clean


def source_of(context: Context) -> str:
    """Return study, machine, date and code, `study quick · 2 cores of AMD EPYC · 26 November 2026 · transect d52373ef`."""
    commits = {str(commit)[:8] for r in context.records if (commit := inside(r.provenance, "git.commit"))}
    code = f"transect {commits.pop()}" if len(commits) == 1 else ""
    parts = (f"study {context.study}", machines(context.records, 1), date(context.records), code)
    return clean(" · ".join(part for part in parts if part))
