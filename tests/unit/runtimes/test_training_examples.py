"""The programs of docs/training-examples.md, taken off the page, train as PyTorch does.

The two ways to export of docs/portable-training-step.md are run too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import ROOT, environment_python
from warm import warm

PAGE = (ROOT / "docs" / "training-examples.md").read_text()
FORMAT_PAGE = (ROOT / "docs" / "portable-training-step.md").read_text()
EXAMPLE = re.compile(r"<!-- example: (\S+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = dict(EXAMPLE.findall(PAGE))
STEPS = 20
# Float32 changes these losses by some 1e-7 of themselves; one update more changes them by 3e-2.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what gives the folder of an environment, which is built when the cache has none."""
    logs = tmp_path_factory.mktemp("environments")
    return lambda name: Path(environment_python(name, logs)).parents[1]


@pytest.fixture(scope="module")
def exported(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """The step that the page's first example exports, and PyTorch's losses."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "export.py").write_text(FILES["export/export.py"])
    helper = Path(__file__).with_name("eager_losses.py")
    done = warm(torch_python).check(helper, "export.py", STEPS, cwd=folder)
    return folder / "step", json.loads(done.stdout)


@pytest.fixture
def project(exported: tuple[Path, list[float]], tmp_path: Path) -> Callable[[str], Path]:
    """Return what makes the folder of a language: its files of the page, and the step."""

    def make(language: str) -> Path:
        folder = tmp_path / language
        for name, text in FILES.items():
            if name.startswith(f"{language}/"):
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
        (folder / "step").symlink_to(exported[0])
        return folder

    return make


def _lay_library(folder: Path, built: Callable[[str], Path]) -> None:
    """Make `onnxruntime` as the release archive has it."""
    (library,) = built("onnxruntime").glob("lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*")
    (folder / "onnxruntime" / "lib").mkdir(parents=True)
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / "onnxruntime" / "lib" / name).symlink_to(library)
    headers = built("onnxruntime-headers") / "include"
    (folder / "onnxruntime" / "include").symlink_to(headers)


def _python(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    return {"PATH": f"{built('onnxruntime') / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def _native(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    _lay_library(folder, built)
    return {}


def _rust(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    """The versions are those that the runner is locked to."""
    _lay_library(folder, built)
    lock = (ROOT / "src/runners/rust/Cargo.lock").read_text()
    assert lock.count('"transect-runner-rust"') == 1
    (folder / "Cargo.lock").write_text(lock.replace('"transect-runner-rust"', '"train"'))
    return {"CARGO_BUILD_JOBS": "1"}


def _go(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    _lay_library(folder, built)
    shutil.copy(ROOT / "src/runners/go/go.sum", folder)
    path = f"{os.environ['PATH']}{os.pathsep}{built('runner-go') / 'bin'}"
    return {"PATH": path, "GOFLAGS": "-buildvcs=false -p=1", "GOTOOLCHAIN": "local"}


def _java(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    """The environment's jar has no library in it, as that of Maven has: it is named."""
    _lay_library(folder, built)
    jars = built("runner-java") / "lib/java"
    (folder / "onnxruntime.jar").symlink_to(jars / "onnxruntime.jar")
    (folder / "onnxruntime/lib/libonnxruntime4j_jni.so").symlink_to(jars / "libonnxruntime4j_jni.so")
    return {"JAVA_TOOL_OPTIONS": f"-Donnxruntime.native.path={folder / 'onnxruntime/lib'}"}


def _javascript(folder: Path, built: Callable[[str], Path]) -> dict[str, str]:
    environment = built("runner-javascript")
    (folder / "node_modules").symlink_to(environment / "runners/node_modules")
    return {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"}


# What must be on PATH, and what is put beside the page's files and into the variables.
LANGUAGES: dict[str, tuple[tuple[str, ...], Callable[..., dict[str, str]]]] = {
    "python": ((), _python),
    "c": (("cc",), _native),
    "cpp": (("c++",), _native),
    "rust": (("cargo",), _rust),
    "go": (("cc",), _go),
    "java": (("java", "javac", "mvn"), _java),
    "javascript": ((), _javascript),
}


def one_of(languages: Iterable[str]) -> list[Any]:
    """Return languages as parameters, all but Python `exhaustive`: most programs are built first."""
    return [pytest.param(name, marks=() if name == "python" else pytest.mark.exhaustive) for name in languages]


def _check(lines: list[str], exported: tuple[Path, list[float]]) -> None:
    losses = [float(line) for line in lines]
    np.testing.assert_allclose(losses, exported[1], rtol=TOLERANCE)
    # It learns: a state that stays what it was would have one loss throughout.
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("language", one_of(LANGUAGES))
def test_program_trains_as_pytorch_does(
    language: str, project: Callable[[str], Path], built: Callable[[str], Path], exported: tuple[Path, list[float]]
) -> None:
    tools, prepare = LANGUAGES[language]
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"no {missing[0]} on PATH")
    folder = project(language)
    variables = prepare(folder, built)
    done = subprocess.run(
        ["bash", "-eu", "run.sh"], cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    _check(done.stdout.splitlines(), exported)


def test_both_ways_of_export_give_the_same_step(torch_python: str, tmp_path: Path) -> None:
    for name, text in EXAMPLE.findall(FORMAT_PAGE):
        (tmp_path / name).write_text(text)
    (line,) = re.findall(r"^ {4}transect (export-step .*)$", FORMAT_PAGE, re.MULTILINE)
    manifests = []
    for command in ([torch_python, "export.py"], [sys.executable, "-m", "transect", *line.split()]):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        manifests.append((tmp_path / "step" / "manifest.json").read_text())
        shutil.rmtree(tmp_path / "step")
    assert manifests[0] == manifests[1]
    assert {"name": "clip", "dtype": "float64", "default": 1.0} in json.loads(manifests[0])["hyper"]


def test_every_program_of_the_page_is_run() -> None:
    languages = {name.partition("/")[0] for name in FILES}
    assert languages == {*LANGUAGES, "browser", "export"}
    assert len(FILES) == PAGE.count("\n```") // 2 == PAGE.count("<!-- example: ")
    assert all(f"{language}/run.sh" in FILES for language in LANGUAGES)
