"""The words of one corpus.

Leaves `tokens.npy` (int32, the numbers of all words, one text after another), `offsets.npy` (int64,
where each text begins, and the end), `words.json` and `result.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.text import TokensCell
from transect.onnx_models.results import result, versions
from transect.text.token_files import write_tokens


def tokenise(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Cut one cell's texts into words; return its result."""
    cell = TokensCell.of(**spec["cell"])
    details = write_tokens(folders["texts"] / "texts.jsonl", out, cell.stop_words)
    return result(details=details, libraries=versions("py3langid", "stopwordsiso", "numpy"))
