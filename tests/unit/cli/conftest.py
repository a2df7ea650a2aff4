"""Commands that run in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from transect.cli.main import run


@pytest.fixture
def transect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what runs a command in this process: its exit code, output and errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["transect", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            run()
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


@pytest.fixture
def compared(transect: Any, tmp_path: Path) -> Any:
    """Return what compares the folders a and b of the test, as data."""

    def call(*options: str, folders: tuple[str, ...] = ("a", "b")) -> tuple[int, dict[str, Any]]:
        code, out, err = transect("compare", *(tmp_path / name for name in folders), "--format", "json", *options)
        assert out, err
        return code, json.loads(out)

    return call
