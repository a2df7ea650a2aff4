"""The files to copy that stand in pages, by name: those of docs/adding.md and docs/adding/ are one set."""

from __future__ import annotations

import re
from pathlib import Path

from checkouts import ROOT

ADDING = "\n".join(
    page.read_text() for page in [ROOT / "docs" / "adding.md", *sorted((ROOT / "docs" / "adding").glob("*.md"))]
)


def examples(text: str) -> dict[str, str]:
    """Return the files to copy that stand in a page, by name."""
    return dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


EXAMPLES = examples(ADDING)


def write_examples(folder: Path) -> Path:
    """Write the plug-ins among them into a folder that is made; return it."""
    folder.mkdir()
    for name, text in EXAMPLES.items():
        if name.endswith(".py"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    return folder
