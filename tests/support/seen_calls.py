"""Which files of the package the processes of each cell run, seen from inside every Python process of a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from checkouts import Checkout

# Python runs this at the start of each process that finds it on its path: those of the study.
# Every function call in the package is noted with the cell that it was for. What runs only
# because a registry looks for plug-ins does not count: no outcome is a function of it.
HOOK = '''
import os, sys, threading

HOME, OUT = {home!r}, {out!r}
CELL = os.environ.get("TRANSECT_CELL")
NOTED = set()


def cell_of(frame):
    """Return the cell of a call, None when it is for none; a payload has one cell only."""
    cell = CELL
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_discover" and code.co_filename.endswith("/domain/registry.py"):
            return None
        runs = "/stages/" in code.co_filename or code.co_filename.endswith(
            ("/engine/payload.py", "/engine/stage_helpers.py")
        )
        if cell is None and runs and code.co_flags & 1 and "job" in code.co_varnames:
            job = frame.f_locals.get("job")
            cell = None if job is None else str(job.folder)
        frame = frame.f_back
    return cell


def note(frame, event, _):
    if event != "call":
        return
    code = frame.f_code
    # Bodies of classes run while their module is imported.
    if not code.co_filename.startswith(HOME) or not (code.co_flags & 1 or code.co_name == "<module>"):
        return
    if (CELL, code.co_filename) in NOTED:
        return
    cell = cell_of(frame)
    if cell is not None and (cell, code.co_filename) not in NOTED:
        NOTED.add((cell, code.co_filename))
        with open(f"{{OUT}}/{{os.getpid()}}.txt", "a") as stream:
            stream.write(f"{{cell}}\\t{{code.co_filename[len(HOME):]}}\\n")


# A report that is made while the study runs, on a slow machine, is made between two cells, by helpers that are spawned;
# Snakemake itself runs none.
OTHERS = ("transect.engine.make_report", "/snakemake", "--multiprocessing-fork")
if not any(word.endswith(OTHERS) for word in getattr(sys, "orig_argv", sys.argv)):
    threading.setprofile(note)
    sys.setprofile(note)
'''


@contextmanager
def watched(checkout: Checkout) -> Iterator[dict[str, set[str]]]:
    """Yield what in the end holds the files that each cell's processes ran, by `STAGE/ID`."""
    source, out = checkout.folder / "src", checkout.folder / "seen"
    out.mkdir()
    script = source / "transect/data/pythonpath/sitecustomize.py"
    script.write_text(HOOK.format(home=f"{source}/", out=str(out)))
    found: dict[str, set[str]] = {}
    yield found
    script.unlink()
    for path in out.glob("*.txt"):
        for line in path.read_text().splitlines():
            folder, file = line.split("\t")
            found.setdefault("/".join(folder.split("/")[-2:]), set()).add(file)
