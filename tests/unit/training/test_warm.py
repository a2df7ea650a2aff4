"""Programs that run in forks of a warm process are as separate as those that start an interpreter."""

from __future__ import annotations

import os
import sys

import pytest

from warm import LOADED_WITH, ended, warm

pytestmark = pytest.mark.env

LEAVE = "import json, os; os.environ['LEFT'] = 'variable'; os.chdir('/'); json.left = 'attribute'"
LOOK = "import json, os, sys; print(os.environ.get('LEFT'), os.getcwd(), hasattr(json, 'left'), sys.argv, __name__)"


def test_nothing_that_a_program_leaves_is_seen_by_the_next(tmp_path):
    assert warm(sys.executable).run("-c", LEAVE).returncode == 0
    done = warm(sys.executable).run("-c", LOOK, "given", cwd=tmp_path)
    assert done.stdout.split() == f"None {tmp_path} False ['-c', 'given'] __main__".split()


@pytest.mark.parametrize(
    ("code", "expected", "printed"),
    [
        ("import sys; sys.stdout.write(sys.stdin.read()); sys.exit(3)", 3, "input"),
        ("import atexit, os; atexit.register(os.abort)", -6, ""),
        ("import atexit; atexit.register(print, 'last')", 0, "last\n"),
        ("raise ValueError('told')", 1, ""),
    ],
)
def test_it_ends_as_an_interpreter_does(code, expected, printed):
    done = warm(sys.executable).run("-c", code, input=b"input")
    assert (done.returncode, done.stdout) == (expected, printed)
    assert ("ValueError: told" in done.stderr) == (expected == 1)


def test_programs_run_at_the_same_time(tmp_path):
    """Each writes what the other waits for."""
    pipes = [tmp_path / "one", tmp_path / "other"]
    for path in pipes:
        os.mkfifo(path)
    first = "import sys; open(sys.argv[1], 'w').write('1'); print(open(sys.argv[2]).read())"
    second = "import sys; print(open(sys.argv[1]).read()); open(sys.argv[2], 'w').write('2')"
    begun = [warm(sys.executable).start("-c", code, *pipes) for code in (first, second)]
    assert [done.stdout for done in ended(begun)] == ["2\n", "1\n"]


def test_what_is_read_when_libraries_are_loaded_cannot_be_another():
    for name in (*LOADED_WITH, "LD_PRELOAD"):
        with pytest.raises(ValueError, match="loaded"):
            warm(sys.executable).run("-c", "", env={name: "other"})
