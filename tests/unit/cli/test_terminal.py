"""Nothing that a name holds reaches a terminal as an order: one place prints every message."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.cli.main import run
from transect.cli.output import print_table
from transect.domain.errors import BadInput, say_fault
from transect.domain.terminal import printable

SRC = Path(__file__).resolve().parents[3] / "src"
# Clears the screen, forges a line, turns text around, and is no UTF-8.
EVIL = b"a\x1b[2J\ntransect: all is well\xe2\x80\xae\xff"


def obeyed(output: bytes) -> list[bytes]:
    """Return what of an output a terminal would obey, and forged lines."""
    orders = [part for part in (b"\x1b", b"\x07", b"\x9b", b"\xe2\x80\xae") if part in output]
    return orders + [line for line in output.splitlines() if line.startswith(b"transect: all is")]


@given(st.text(st.characters(codec=None)))
def test_printable_is_one_line_that_can_be_written(text):
    shown = printable(text)
    assert shown.splitlines() in ([shown], [])
    assert shown.isprintable() or not text.isprintable()
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    shown.encode()
    assert printable(shown) == shown


def test_a_table_shows_names_as_they_are_and_takes_no_markup(capsys):
    print_table(("name", "lines"), [("[red]x[/nothing]\x1b[31m", ["one", "two\nthree"])])
    printed = capsys.readouterr().out
    assert "[red]x[/nothing]\\x1b[31m" in printed
    assert "two\\nthree" in printed and "\x1b" not in printed


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadInput("no"), 2, "transect: no\n"),
        (PermissionError(13, "Permission denied", "a\nb"), 2, "transect: a\\nb: Permission denied\n"),
        (OSError(28, "No space left on device"), 75, "transect: there: No space left on device\n"),
        (OSError(27, "File too large"), 75, "transect: there: File too large\n"),
        (SystemExit(0), 2, "sys.exit(0) was called"),
        (RuntimeError("\x1b[2J"), 1, "RuntimeError: \\x1b[2J"),
    ],
)
def test_what_ends_a_process_is_told_and_has_its_exit_code(capsys, error, code, message):
    assert say_fault(error, "there") == code
    printed = capsys.readouterr().err
    assert message in printed and "\x1b" not in printed


def prints(path: Path) -> list[str]:
    """Return the calls in a file that write to a terminal by themselves."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        # JSON escapes by itself.
        json = bool(node.args) and ast.unparse(node.args[0]).startswith(("json.dumps(", "to_json("))
        if (called == "print" and not json) or called.startswith(
            ("traceback.print", "sys.stdout.write", "sys.stderr.write", "typer.echo")
        ):
            found.append(f"{path.relative_to(SRC)}:{node.lineno}: {called}")
    return found


def test_only_one_module_prints():
    files = [
        *(
            path
            for folder in ("cli", "adapters", "engine", "planning", "report", "analysis")
            for path in (SRC / "transect" / folder).rglob("*.py")
        )
    ]
    assert len(files) > 100
    assert [line for path in files for line in prints(path)] == []
    # It finds what it looks for.
    assert prints(SRC / "transect" / "domain" / "terminal.py") != []


@pytest.fixture
def transect(monkeypatch, capfdbinary):
    """Return what runs a command in this process, as a shell gives it its words: exit code, output, errors."""

    def call(*arguments: str | bytes) -> tuple[int, bytes, bytes]:
        monkeypatch.setattr(sys, "argv", ["transect", *map(os.fsdecode, arguments)])
        with pytest.raises(SystemExit) as end:
            run()
        return int(end.value.code or 0), *capfdbinary.readouterr()

    return call


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_names_of_logs_are_shown_and_not_obeyed(tmp_path, form, transect):
    name = os.fsencode(tmp_path) + b"/" + EVIL
    with open(name, "wb") as stream:
        stream.write(b"nothing known\n")
    code, out, err = transect("ingest", name, "--format", form)
    assert code == 0, err
    assert b"[2J" in out
    assert obeyed(out + err) == []


def check_error(arguments: list[str | bytes], code: int, out: bytes, err: bytes) -> None:
    assert code in (2, 3, 127), (arguments, err)
    assert b"[2J" in err and b"Traceback" not in err, err
    assert obeyed(out + err) == [], arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", EVIL + b".yaml"],
        ["status", EVIL],
        ["why", "quick", EVIL],
        ["check", "quick", "--system", EVIL + b".yaml"],
        ["launch", "--framework", EVIL, "--strategy", "ddp", "--", "true"],
        [b"--" + EVIL],
    ],
)
def test_names_in_errors_are_shown_and_not_obeyed(tmp_path, monkeypatch, transect, arguments):
    monkeypatch.chdir(tmp_path)
    check_error(arguments, *transect(*arguments))
