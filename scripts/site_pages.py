"""What the site of docs/ needs besides its pages, called by MkDocs: links that lead out of docs/, and pages that fetch nothing.

Pages link files of the repository, for code hosts. On the site such a link leads to the repository that
TRANSECT_REPOSITORY gives; without one its words stay, and the link goes. That the files exist is tested with the pages.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_FENCES = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\((\.\.?/[^)\s]+)\)")
# What a browser loads by itself: links that a reader follows are no such thing.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//[^\s\">]+|<link\b[^>]*\bhref=\"?(?:https?:)?//[^\s\">]+"
)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return a page's text with the links that lead out of docs/ made whole, or taken away."""
    folder = posixpath.dirname(page.file.src_uri)
    repository = config.extra["repository"].rstrip("/")
    parts = _FENCES.split(markdown)
    # What stands at odd places is a block of code.
    parts[::2] = [_LINK.sub(lambda link: _rewritten(link, folder, repository), part) for part in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Return a page as it is. Raises ValueError where it would fetch something from elsewhere."""
    if found := _FETCHED.search(output):
        raise ValueError(f"{page.file.src_uri}: the site is to work without a network, found {found[0]}")
    return output


def _rewritten(link: re.Match[str], folder: str, repository: str) -> str:
    words, target = link.groups()
    path = posixpath.normpath(posixpath.join(folder, target))
    if not path.startswith("../"):
        return link[0]
    return f"[{words}]({repository}/blob/main/{path.removeprefix('../')})" if repository else words
