"""Sections that are no study's report, as a page with its styles, scripts and blocks, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup

from transect.report.engine import shell
from transect.report.engine.blocks import Body, Chip, Heading, Part, Prose, Table
from transect.report.engine.collect import MadeSection
from transect.report.engine.formats._markdown_text import inline, row
from transect.report.engine.text import clean, clipped, count

# Key, title, and what yields the parts.
Unmade = tuple[str, str, Callable[[], Iterable[Part]]]
# What says nothing without its drawings, and what is said on the page alone.
_PAGE_ONLY = ("charts", "charts-of-cells", "methods")
# Sections that Markdown does not fold.
_OPEN = ("verdict", "changes")
# Rows of one table in Markdown, where a comment's 65,536 characters have no room for the ones before fewer; and
# characters of one of a row's places.
_MAX_ROWS, _MAX_COMMENT, _MAX_LENGTH = (40, 20, 10, 5, 2), 65_000, 200


def made_sections(unmade: Iterable[Unmade], *, drawn: bool) -> list[MadeSection]:
    """Make sections; one that shows nothing is left out, and one of the page alone unless `drawn`."""
    made = ((key, title, Body.of(make())) for key, title, make in unmade if drawn or key not in _PAGE_ONLY)
    return [MadeSection(key=key, title=title, body=body) for key, title, body in made if body and body.blocks]


def page_of(
    sections: Sequence[MadeSection],
    *,
    kind: str,
    title: str,
    about: Sequence[str],
    chips: Sequence[Chip],
    home: str = "",
    home_name: str = "All studies",
    opened: int = 2,
) -> bytes:
    """Return a page. `kind` says what it is, `about` what it is of, `home` is the page beside it that names them all.

    `opened`: so many of its sections are not folded.
    """
    made = shell.templates()
    section = made.get_template("section.html.j2")
    page = made.get_template("comparison.html.j2").render(
        kind=kind,
        title=clean(title),
        about=[clean(line) for line in about],
        chips=chips,
        home=home,
        home_name=home_name,
        opened=opened,
        sections=[(part, Markup(section.render(body=part.body))) for part in sections],  # noqa: S704 escaped by the template
    )
    # A lone surrogate cannot be written as UTF-8; it may come from a name.
    return page.encode("utf-8", errors="replace")


def sections_markdown(title: str, sections: Iterable[MadeSection]) -> str:
    """Write sections as a comment on a pull request has them: what changed is open, the rest folds."""
    made = list(sections)
    written = (_markdown(title, made, most) for most in _MAX_ROWS)
    return next(
        (text for text in written if len(text.encode("utf-8", "replace")) <= _MAX_COMMENT),
        _markdown(title, made, _MAX_ROWS[-1]),
    )


def _markdown(title: str, sections: Iterable[MadeSection], most: int) -> str:
    parts = [f"### transect: {inline(title)}"]
    for section in sections:
        body = "\n\n".join(_blocks_markdown(section.body, most))
        if section.key not in _OPEN:
            body = f"<details><summary>{inline(section.title)}</summary>\n\n{body}\n\n</details>"
        parts.append(body)
    return "\n\n".join(parts) + "\n"


def _blocks_markdown(body: Body, most: int) -> Iterator[str]:
    for block in body.blocks:
        if isinstance(block, (Prose, Heading)):
            yield inline(block.text)
        elif isinstance(block, Table):
            if title := block.caption or block.folded:
                yield f"**{inline(title)}**"
            lines = [[column.title for column in block.columns], ["---"] * len(block.columns)]
            for values in block.rows[:most]:
                lines.append([inline(clipped(text, _MAX_LENGTH)) for text in texts(values)])
            yield "\n".join(map(row, lines))
            if (more := len(block.rows) + block.more - most) > 0:
                yield f"and {count(more, 'row')} more"


def texts(values: Iterable[str | Chip | None]) -> list[str]:
    """Return what stands in a row as text."""
    return [value.text if isinstance(value, Chip) else value or "" for value in values]
