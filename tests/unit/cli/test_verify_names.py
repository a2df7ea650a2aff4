"""`transect verify` shows names of files as they are."""

from __future__ import annotations

import pytest
import typer

from transect.cli.verify import verify
from transect.engine import verify as checks


def test_no_name_of_a_file_counts_as_markup(tmp_path, monkeypatch, capsys):
    wrong = "outputs/[/x][red].bin is not there"
    verdicts = [checks.Verdict(stage="infer", cell="c", wrong=wrong)]
    monkeypatch.setattr(checks, "verify_records", lambda paths: iter(verdicts))
    with pytest.raises(typer.Exit):
        verify(str(tmp_path))
    assert wrong in capsys.readouterr().out
