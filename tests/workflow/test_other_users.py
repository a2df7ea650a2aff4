"""Results that somebody else keeps: they can be looked at, and a run there is refused in words."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkouts import Checkout
from transect.engine import claim

pytestmark = pytest.mark.study

STUDY = "name: shared\ntitle: {title}\ningest: {{paths: [logs]}}\n"
# No permission stops root; without capabilities it is a user like others.
_AS_A_USER = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


@pytest.fixture(scope="module")
def shared(checkout: Checkout) -> Iterator[Checkout]:
    """A checkout with finished results in a folder that may be read only."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root needs setpriv to be a user like others")
    (checkout.folder / "shared.yaml").write_text(STUDY.format(title="first"))
    (checkout.folder / "logs").mkdir()
    (checkout.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    done = checkout.snakemake("--config", "study=shared.yaml")
    assert done.returncode == 0, done.stderr
    folder = checkout.folder / "results"
    subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    yield checkout
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=True)


def as_a_user(shared: Checkout, command: list[str]) -> subprocess.CompletedProcess[str]:
    prefix = _AS_A_USER if os.geteuid() == 0 else []
    variables = shared.environment() | {"PYTHONPATH": str(shared.folder / "src")}
    return subprocess.run([*prefix, *command], cwd=shared.folder, env=variables, capture_output=True, text=True)


def test_a_run_in_anothers_results_is_refused_in_words(shared):
    (shared.folder / "shared.yaml").write_text(STUDY.format(title="another"))
    # Another clone, of a user who has never run this.
    shutil.rmtree(shared.folder / ".snakemake", ignore_errors=True)
    done = as_a_user(shared, shared.command("--config", "study=shared.yaml", "--forceall"))
    assert done.returncode == 2, done.stderr
    assert "results" in done.stderr and "cannot be written" in done.stderr
    assert "--config results=FOLDER" in done.stderr
    assert "Traceback" not in done.stderr
    dry = as_a_user(shared, shared.command("--config", "study=shared.yaml", "--dry-run"))
    assert dry.returncode == 0, dry.stderr
    assert "[transect] no cell would run" in dry.stderr


def test_a_claim_that_cannot_be_read_is_somebodys(monkeypatch, tmp_path):
    taken = claim.Claim(tmp_path, "study")
    taken.path.parent.mkdir()
    taken.path.write_text("{}")

    read = Path.read_text

    def refuse(path: Path, *arguments: str, **more: str) -> str:
        if path == taken.path:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *arguments, **more)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert taken.held_by_another()
    with pytest.raises(claim.BadInput, match="is in use by"):
        taken.take()
