"""miniBUDE's decks by name: they come with its sources, in the folder `data`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from transect.hpc.benchmarks._options import OptionError

NAMED = ("bm1", "bm2")
FOLDER = "TRANSECT_DECKS"
# Version 2 names a program for each programming model, version 1 all of them `bude`.
PROGRAMS = ("omp-bude", "cuda-bude", "bude", "minibude")


def named_deck(name: str, programs: Iterable[str] = PROGRAMS) -> Path:
    """Return the folder of a deck, of $TRANSECT_DECKS or else beside one of the programs or one folder up.

    `programs` are names or paths. Raises OptionError where it is in none.
    """
    given = os.environ.get(FOLDER, "")
    places = [Path(given)] if given.startswith("/") else []
    for program in programs:
        if (path := shutil.which(program)) is not None:
            here = Path(path).resolve().parent
            places += [here / "data", here.parent / "data"]
    for place in places:
        if (place / name).is_dir():
            return place / name
    raise OptionError(
        f"option deck: {name} is neither in {FOLDER} ({given or 'not set'}) nor in the folder `data` of a miniBUDE on PATH: "
        f"`git clone https://github.com/UoB-HPC/miniBUDE && export {FOLDER}=$PWD/miniBUDE/data`"
    )
