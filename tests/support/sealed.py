"""Editing a record as a tool that knows its format would: with a checksum that holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transect.domain.record import checksum_of


def resealed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a record's content in place, and its checksum with it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    content["checksum"] = checksum_of(content)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
