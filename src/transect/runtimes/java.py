"""ONNX Runtime from Java."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime, library_file, missing_tool

_MIN_COUNT = 17
_JDK = f"install a JDK, version {_MIN_COUNT} or newer"


@cache
def _old_java() -> str | None:
    """Return what is wrong with the version of `java`, or None."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    version = (done.stderr or done.stdout).strip().partition("\n")[0]
    found = re.search(r'version "(\d+)', version)
    if found is not None and int(found[1]) >= _MIN_COUNT:
        return None
    return f"java on PATH is '{version}': {_JDK}"


@RUNTIMES.register("java")
class JavaRuntime(CompiledRuntime):
    """ONNX Runtime's Java API over direct buffers, on HotSpot or another virtual machine."""

    environment = "runner-java"
    program = "transect-runner-java"
    trains = True

    def supports(self, cell: InferCell) -> str | None:
        """Every precision, on CPU or CUDA, with a JDK and Maven."""
        missing = missing_tool("java", how=_JDK) or missing_tool("javac", how=_JDK)
        missing = missing or missing_tool("mvn", how="install Apache Maven, which takes the jars")
        return super().supports(cell) or missing or _old_java()

    def files(self, python: str) -> list[Path]:
        """Return the program's jars, the binding, and the library."""
        return [Path(python).parents[1] / "lib" / "java", library_file(python)]
