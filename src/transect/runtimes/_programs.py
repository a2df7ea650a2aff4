"""What runtimes share: programs that an environment's `build.sh` makes, libraries, packages."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

from transect.runtimes import RUNNERS, Runtime

_PYTHON = RUNNERS / "python"
# What all programs in Python are made of.
CONTRACT = [
    _PYTHON / f"{name}.py"
    for name in ("main", "engines", "plan", "measure", "stopping", "turns", "load", "train", "result")
]


def library_file(python: str) -> Path:
    """Return ONNX Runtime's shared library, in the environment that `needs.txt` names.

    `build.sh` leaves the link `FOLDER/onnxruntime` to the folder that holds it.
    """
    folder = Path(python).parents[1] / "onnxruntime"
    return next(iter(sorted(folder.glob("libonnxruntime.so.*.*"))), folder / "libonnxruntime.so")


def packages(python: str, *names: str) -> list[Path]:
    """Return the folders of installed packages in the environment of an interpreter."""
    found = Path(python).parents[1].glob("lib/python*/site-packages")
    return [folder / name for folder in found for name in names if (folder / name).exists()]


def missing_tool(*names: str, how: str) -> str | None:
    """Return what to install when none of the programs is on PATH, or None."""
    if any(shutil.which(name) for name in names):
        return None
    return f"{' or '.join(names)} is not on PATH: {how}"


def missing_library(*names: str, how: str) -> str | None:
    """Return what to install when one of the shared libraries cannot be loaded, or None."""
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            return f"{name} cannot be loaded ({error}): {how}"
    return None


class PythonProgram(Runtime):
    """A program in Python, run by the environment's interpreter.

    A subclass sets `environment`, `program` and the `imports` of the program: folders of packages.
    """

    program: Path
    imports: tuple[str, ...]

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(self.program), *arguments]

    def files(self, python: str) -> list[Path]:
        """Return the packages that it imports."""
        return packages(python, *self.imports)


class CompiledRuntime(Runtime):
    """A program at `bin/PROGRAM` of its environment that loads ONNX Runtime's shared library.

    A subclass sets `environment` and `program`. No compiler is needed where `build.sh` can install one;
    `supports` names what else is missing.
    """

    program: str

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program."""
        return [str(Path(python).parent / self.program), *arguments]

    def library(self, python: str) -> Path | None:
        """Return the library of the environment that `needs.txt` names."""
        return library_file(python)

    def files(self, python: str) -> list[Path]:
        """Return the program and the library."""
        return [Path(python).parent / self.program, library_file(python)]
