"""The programs of docs/predict.md, taken off the page, tell the class that the bundle is expected to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_texts import CLASSES, probabilities
from test_training_examples import EXAMPLE, LANGUAGES, one_of

from checkouts import ROOT, environment_python

PAGE = (ROOT / "docs" / "predict.md").read_text()
FILES = dict(EXAMPLE.findall(PAGE))
TEXT = "Hello the Straße, привет x"
# Java's library reads no JSON: its program tells a number.
NUMBERS = ("java",)


@pytest.mark.parametrize("language", one_of(sorted({name.partition("/")[0] for name in FILES})))
def test_program_tells_the_class(language: str, bundle: Path, tmp_path: Path) -> None:
    def built(name: str) -> Path:
        return Path(environment_python(name, tmp_path)).parents[1]

    tools: tuple[str, ...]
    prepare: Callable[[Path, Callable[[str], Path]], dict[str, str]]
    tools, prepare = LANGUAGES[language]
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"no {missing[0]} on PATH")
    folder = tmp_path / language
    folder.mkdir()
    for name, text in FILES.items():
        if name.startswith(f"{language}/"):
            (tmp_path / name).write_text(text)
    for name in ("predict.onnx", "pipeline.json"):
        (folder / name).symlink_to(bundle / name)
    variables = prepare(folder, built)
    done = subprocess.run(
        ["bash", "-eu", "run.sh", TEXT],
        cwd=folder,
        env=os.environ | {"LC_ALL": "C.UTF-8"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (shares,) = probabilities([TEXT.encode()])
    best = int(shares.argmax())
    name = str(best) if language in NUMBERS else CLASSES[best]
    assert done.stdout == f"{name} {shares[best]:.4f}\n"


def test_every_program_of_the_page_is_run() -> None:
    assert len(FILES) == len(re.findall(r"^<!-- example: ", PAGE, re.MULTILINE))
    assert {name for name in FILES if name.endswith("run.sh")} == {f"{name.partition('/')[0]}/run.sh" for name in FILES}
