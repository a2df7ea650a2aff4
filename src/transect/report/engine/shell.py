"""What every page of ours is put together from: templates, styles and scripts, each with its hash."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from transect.report.engine.explored import Explored

TEMPLATES = Path(__file__).parent / "templates"

# In the order in which a page has them: what comes later may rely on what came before.
STYLES = ("page.css", "explore.css", "sections.css")
SCRIPTS = (
    "page.js",
    "explore.js",
    "explore_bar.js",
    "explore_csv.js",
    "explore_tables.js",
    "explore_charts.js",
    "explore_pictures.js",
)


CODE = re.compile(r"`([^`\n]{1,200})`")


def coded(text: str) -> Markup:
    """Escape a text; what lies between backticks becomes code.

    >>> str(coded("The `<cell>` & more"))
    'The <code>&lt;cell&gt;</code> &amp; more'
    """
    parts = enumerate(CODE.split(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in parts)


def templates() -> Environment:
    """Return the environment of one page's templates; what they show is escaped.

    They tell `explored` what their elements are about, and write it at the end of the page.
    """
    explored = Explored()
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        facets=explored.facets,
        chart_id=explored.chart,
        numbers=explored.numbers,
        explored=explored,
        styles=[own_file(name) for name in STYLES],
        scripts=(scripts := [own_file(name) for name in SCRIPTS]),
        policy=Markup(" ").join(Markup("'{}'").format(script_hash(script)) for script in scripts),
        script_json=script_json,
        source="",
        coded=coded,
    )
    return environment


def script_json(value: Any) -> Markup:
    """Serialise for a script element: nothing in it can end the element or a line.

    >>> str(script_json({"a": "</script>\\u2028"}))
    '{"a":"\\\\u003c/script\\\\u003e\\\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 escaped above


def own_file(name: str) -> Markup:
    """Read a style sheet or script of our own, which goes into the page as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 our own file


def script_hash(script: str) -> Markup:
    """Return what a page's Content-Security-Policy names a script by."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    return Markup(f"sha256-{digest}")  # noqa: S704 base64
