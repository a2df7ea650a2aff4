"""Environments, checkouts and the browser that tests share. Tiers, order and the log of a run: tiers.py."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from checkouts import Checkout, environment_python

pytest_plugins = ["tiers", "run_log", "thirds", "installed_package"]

# A shell starts what runs in the background with SIGINT ignored, and that is inherited: the runs
# that a test interrupts would not notice. With a handler of ours, programs start with the default.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says what else the machine does.
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("drawn", BUSY, derandomize=False)
settings.register_profile("same", BUSY, derandomize=True)

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run of `make test`, so that what is green stays so.

    `--exhaustive` draws others each time, `--hypothesis-seed` those of its number.
    """
    drawn = config.getoption("--exhaustive") or config.getoption("--hypothesis-seed") is not None
    settings.load_profile("drawn" if drawn else "same")


@pytest.fixture(scope="module", autouse=True)
def of_no_other_study() -> Iterator[None]:
    """Forget the workloads and frameworks that a module's studies describe: another one's are not those."""
    yield
    for name, registry in (("frameworks", "FRAMEWORKS"), ("workloads", "WORKLOADS"), ("datasets", "DATASETS")):
        known = getattr(sys.modules.get(f"transect.training.{name}"), registry, None)
        for described in () if known is None else tuple(known._described):
            del known._entries[described], known._files[described]
            known._described.discard(described)


@pytest.fixture(autouse=True)
def programs_asked() -> None:
    """Ask compilers, Java and mpiexec what they are, as planning does once in a process: no fast test starts them.

    Before each test, as some forget the answers.
    """
    from transect.launch.launchers import mpiexec
    from transect.planning import environments
    from transect.runtimes import java

    for _, variable, program, flag in environments._COMPILERS:
        environments.program_version(os.environ.get(variable) or program, flag)
    if shutil.which("java"):
        java._old_java()
    if found := shutil.which("mpiexec"):
        mpiexec._is_open_mpi(found)


def _of_environment(environment: str, *, folder: bool = False) -> Any:
    """Make the fixture of an environment, built when the cache has none: its interpreter, or the folder of its programs."""

    @pytest.fixture(scope="session")
    def made(tmp_path_factory: pytest.TempPathFactory) -> str | Path:
        python = environment_python(environment, tmp_path_factory.mktemp("environment"))
        return Path(python).parent if folder else python

    return made


base_python = _of_environment("base")
probes_python = _of_environment("probes-c")
torch_python = _of_environment("torch")
text_python = _of_environment("text")
tensorflow_python = _of_environment("tensorflow")
go_programs = _of_environment("trainer-go", folder=True)
go_numpy_programs = _of_environment("trainer-go-numpy", folder=True)
gorgonia_programs = _of_environment("trainer-go-gorgonia", folder=True)


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
