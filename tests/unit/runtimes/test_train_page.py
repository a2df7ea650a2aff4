"""The page that trains digits: driven in a real browser; what it leaves, a runner goes on with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import ROOT, environment_python
from transect.runtimes import RUNTIMES
from transect.runtimes.programs import start_command
from transect.runtimes.training import train_record
from transect.runtimes.training_plans import Training

pytestmark = pytest.mark.browser

SCRIPT = [sys.executable, str(ROOT / "scripts" / "train-page")]
# Far beyond what a busy machine takes.
PATIENCE_MS = 300_000
BATCH = 64


@pytest.fixture(scope="session")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the script writes."""
    folder = tmp_path_factory.mktemp("train-page")
    subprocess.run([*SCRIPT, str(folder), "--no-serve"], check=True)
    return folder


@pytest.fixture
def served(assembled: Path, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A copy of the folder, which may be edited, and the address under which it is served."""
    folder = tmp_path / "page"
    shutil.copytree(assembled, folder)
    code = "import sys; from pathlib import Path; from train_page.main import serve; "
    code += "serve(Path(sys.argv[1]), 0)"
    path = f"{ROOT / 'scripts'}{os.pathsep}{ROOT / 'src'}"
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    yield folder, server.stdout.readline().strip()
    server.terminate()
    server.communicate()


@pytest.fixture
def opened(browser: Any, served: tuple[Path, str]) -> Iterator[Callable[..., Any]]:
    """Return what opens the page and waits until it can train."""
    contexts = []

    def open_page(width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.requests_made, page.complaints = [], []
        page.on("request", lambda request: page.requests_made.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(served[1])
        page.wait_for_function("document.getElementById('status').textContent !== 'Loading …'")
        assert page.inner_text("#status") == "Ready.", page.complaints
        return page

    yield open_page
    for context in contexts:
        context.close()


def _train(page: Any, until: int) -> int:
    """Train at least to a step, then pause; return the step."""
    page.click("#run")
    page.wait_for_function(f"Number(document.getElementById('step').textContent) >= {until}")
    page.click("#run")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Paused')")
    return int(page.inner_text("#step"))


def test_digits_are_learnt_and_a_runner_goes_on(opened: Any, served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    page = opened()
    assert page.evaluate("crossOriginIsolated")
    before = page.inner_text("#accuracy")
    step = _train(page, 50)
    # A network that guesses has log(10) = 2.3, and reads a tenth.
    assert float(page.inner_text("#loss")) < 1
    assert float(before.rstrip(" %")) < 50
    assert float(page.inner_text("#accuracy").rstrip(" %")) > 80
    right, wrong = (page.locator(f"#digits .{kind}").count() for kind in ("right", "wrong"))
    assert (right + wrong, right > wrong) == (20, True)
    assert page.complaints == []
    assert all(url.startswith((address, "data:")) for url in page.requests_made)
    with page.expect_download() as download:
        page.click("#save")
    state = tmp_path / download.value.suggested_filename
    download.value.save_as(state)
    assert state.name == f"digits-step-{step}.safetensors"
    record = _go_on(folder, state, step, tmp_path)
    assert record["first_step"] == step
    assert max(record["losses"]) < 1


def _go_on(folder: Path, state: Path, step: int, out: Path) -> dict[str, Any]:
    """Train ten more steps with the runner in Python; return its record."""
    rows = json.loads((folder / "data/train/header.json").read_text())["tensors"][0]["shape"][0]
    order = np.random.default_rng(0).integers(0, rows, (step + 10) * BATCH).astype("<i8")
    order.tofile(out / "order.bin")
    asked = Training(
        step=folder / "step",
        data=folder / "data" / "train",
        order=out / "order.bin",
        state=state,
        checkpoint=out / "next",
        out=out / "run",
        batch=BATCH,
        until=step + 10,
    )
    python = environment_python(RUNTIMES.get("python").environment, out)
    done = subprocess.run(start_command("python", python, asked.plan()), check=True)
    return train_record("python", asked.out, done.returncode, asked.step, asked.checkpoint)


def test_divergence_is_said_and_the_state_of_before_kept(opened: Any, served: tuple[Path, str]) -> None:
    # Weights of a good state, but so large that no logit is finite.
    state = served[0] / "step" / "state.safetensors"
    raw = state.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    begin, end = header["model.0.weight"]["data_offsets"]
    large = np.full((end - begin) // 4, 3e38, np.float32).tobytes()
    state.write_bytes(raw[: start + begin] + large + raw[start + end :])
    page = opened()
    page.click("#run")
    page.wait_for_function("document.getElementById('status').classList.contains('bad')")
    assert page.inner_text("#status").startswith("Diverged at step 0: back at step 0.")
    assert page.inner_text("#run") == "Start"
    with page.expect_download() as download:
        page.click("#save")
    assert Path(download.value.path()).read_bytes() == state.read_bytes()


def test_types_hold_strictly(assembled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    shutil.copytree(assembled, folder)
    runners = Path(environment_python("runner-browser", tmp_path)).parents[1] / "runners"
    (folder / "node_modules").symlink_to(runners / "node_modules")
    compiler = runners / "node_modules" / "typescript" / "bin" / "tsc"
    path = f"{runners.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", str(compiler), "-p", str(folder / "tsconfig.json")],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
