"""The words of one corpus: `python -m transect.stages.tokens.worker --spec … --dialogue … --out …`.

Leaves `tokens.npy` (int32, the numbers of all words, one text after another), `offsets.npy` (int64,
where each text begins, and the end), `words.json` and `result.json`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from transect.domain.axes.text import TokensCell
from transect.domain.cell import Cell
from transect.text.payload import run
from transect.text.token_files import write_tokens


def tokenise(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Cut one cell's texts into words; return the details of its record."""
    cell = Cell.of(**spec["cell"])
    assert isinstance(cell, TokensCell)
    return write_tokens(folders["dialogue"] / "texts.jsonl", out, cell.stop_words)


def main(arguments: list[str] | None = None) -> int:
    """Run one tokens cell."""
    libraries = ("py3langid", "stopwordsiso", "numpy")
    return run("the words of one corpus", ("dialogue",), tokenise, libraries, arguments)


if __name__ == "__main__":
    sys.exit(main())
