"""transect as people install it: built, and put by pip into an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT

EXECUTOR = "src/snakemake-executor-plugin-slurm-robust"
# What the package is built from. Never the checkout itself: setuptools leaves what it made beside the sources.
SOURCES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "Snakefile",
    "config",
    "docs",
    "envs",
    "profiles",
    "src",
    "workflow",
)
MADE = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "target", "node_modules")


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def sources(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=MADE)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def call(*command: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRANSECT_", "PYTHON", "VIRTUAL_ENV"))}
    if "TRANSECT_ENVS" in os.environ:
        kept["TRANSECT_ENVS"] = os.environ["TRANSECT_ENVS"]
    return subprocess.run([*map(str, command)], cwd=folder, env=kept | variables, capture_output=True, text=True)


def fine(*command: object, folder: Path, **variables: str) -> str:
    done = call(*command, folder=folder, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(sources, tmp_path_factory) -> Path:
    """A folder with the source archive, and wheels of it and of the executor."""
    out = tmp_path_factory.mktemp("built")
    build = "import sys, setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"
    fine(sys.executable, "-m", "venv", out / "builder", folder=out)
    python = out / "builder" / "bin" / "python"
    fine(python, "-m", "pip", "install", "-q", "setuptools>=77", folder=out)
    fine(python, "-c", build, out, folder=sources)
    (archive,) = out.glob("transect-*.tar.gz")
    fine(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, archive, sources / EXECUTOR, folder=out)
    return out


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory) -> Path:
    """The `bin` folder of an environment that has transect and its executor, as pip puts them there."""
    folder = tmp_path_factory.mktemp("installed")
    fine(sys.executable, "-m", "venv", folder, folder=folder)
    (wheel,) = built.glob("transect-*.whl")
    constraints = ROOT / "envs" / "driver" / "requirements.txt"
    pip = (folder / "bin" / "python", "-m", "pip", "install", "-q", "--find-links", built, "-c", constraints)
    fine(*pip, f"transect[slurm] @ file://{wheel}", folder=folder)
    return folder / "bin"
