"""A page of sections that is no study's report: the same styles, scripts and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from markupsafe import Markup

from transect.domain.files import write_atomic
from transect.report.engine import shell
from transect.report.engine.blocks import Body, Chip, Part
from transect.report.engine.collect import MadeSection
from transect.report.engine.text import clean


def made_sections(parts: Iterable[tuple[str, str, Callable[[], Iterable[Part]]]]) -> list[MadeSection]:
    """Make sections of keys, titles and what yields their parts; one that yields nothing is left out."""
    made = ((key, title, Body.of(make())) for key, title, make in parts)
    return [MadeSection(key=key, title=title, body=body) for key, title, body in made if body]


def write_sections(
    output: Path, sections: Sequence[MadeSection], *, kind: str, title: str, about: Sequence[str], chips: Sequence[Chip]
) -> None:
    """Write a page, atomically. `kind` says what it is, `about` what it is of; raises OSError."""
    made = shell.templates()
    section = made.get_template("section.html.j2")
    page = made.get_template("comparison.html.j2").render(
        kind=kind,
        title=clean(title),
        about=[clean(line) for line in about],
        chips=chips,
        sections=[(part, Markup(section.render(body=part.body))) for part in sections],  # noqa: S704 escaped by the template
    )
    # A lone surrogate cannot be written as UTF-8; it may come from a name.
    write_atomic(output, page.encode("utf-8", errors="replace"))
