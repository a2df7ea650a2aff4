"""Environments and checkouts that tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def _environment_python(name: str, folder: Path) -> str:
    from transect.execution.build_environment import build

    facts = build(name, folder / f"{name}.log")
    assert facts["status"] == "ok", facts["message"]
    return str(facts["python"])


@pytest.fixture(scope="session")
def base_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of the base environment, built when the cache has none."""
    return _environment_python("base", tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def torch_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of the torch environment, built when the cache has none."""
    return _environment_python("torch", tmp_path_factory.mktemp("environment"))


class Checkout:
    """A copy of the repository in which a test may edit anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("Snakefile", "workflow", "config", "envs", "profiles", "src", "tests/data"):
            source = ROOT / name
            if source.is_dir():
                skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, folder / name, ignore=skip)
            else:
                shutil.copy2(source, folder / name)

    def command(self, *arguments: str) -> list[str]:
        """Return the argv of Snakemake in this checkout."""
        snakemake = Path(sys.executable).parent / "snakemake"
        return [str(snakemake), "--profile", "profiles/local", *arguments]

    def environment(self) -> dict[str, str]:
        """Return variables in which nothing of the tests' own run is left."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRANSECT_", "PYTHON"))}
        if "TRANSECT_ENVS" in os.environ:
            kept["TRANSECT_ENVS"] = os.environ["TRANSECT_ENVS"]
        return kept

    def snakemake(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def transect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line with this checkout's sources."""
        return subprocess.run(
            [sys.executable, "-m", "transect", *arguments],
            cwd=self.folder,
            env=self.environment() | {"PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def pending(self, *config: str) -> set[str]:
        """Return the outputs that Snakemake's own summary says would be made again."""
        run = self.snakemake("--summary", "--config", *config)
        assert run.returncode == 0, run.stderr
        rows = [line.split("\t") for line in run.stdout.splitlines() if line.startswith("results/")]
        assert rows, run.stdout
        return {row[0] for row in rows if row[-1] != "no update"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout for one test module."""
    return Checkout(tmp_path_factory.mktemp("checkout") / "transect")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium; skips with the reason when there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        path = str(CHROMIUM) if CHROMIUM.exists() else playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip(f"no chromium at {CHROMIUM} nor at {path}")
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def browser_page(browser: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """A phone-wide page with the requests that it made and the errors that it met."""
    page = browser.new_page(viewport={"width": 375, "height": 800})
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    yield page, requests, errors
    page.close()
