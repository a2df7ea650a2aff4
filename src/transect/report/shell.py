"""What every page of ours is put together from: templates, styles and scripts, each with its hash."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from transect.report.inline import Inline

__all__ = ["SCRIPTS", "STYLES", "own_file", "script_hash", "templates"]

_TEMPLATES = Path(__file__).parent / "templates"

# In the order in which a page has them: what comes later may rely on what came before.
STYLES = ("page.css", "explore.css", "sections.css")
SCRIPTS = ("page.js", "explore.js", "environment.js")


@cache
def templates() -> Environment:
    """Return the environment of all templates; what they show is escaped.

    A page with a glossary renders its sections with an `inline` of their own, whose terms lead there.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["inline"] = Inline(linked=False)
    return environment


def own_file(name: str) -> Markup:
    """Read a style sheet or script of our own, which goes into the page as it is."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 our own file


def script_hash(script: str) -> Markup:
    """Return what a page's Content-Security-Policy names a script by."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    return Markup(f"sha256-{digest}")  # noqa: S704 base64
