"""The tutorial, the course, the how-tos and the page for agents say what the command line does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from checkouts import ROOT
from doc_examples import examples
from transect.cli.main import app
from transect.domain.paths import DATA
from transect.engine.pack import unpack
from transect.stats.comparisons import Confidence

DOCS = ROOT / "docs"
# A study of nodes is of a cluster's.
SYSTEMS = {"another-node.yaml": "example-cpu-cluster"} | dict.fromkeys(
    ("two-nodes.yaml", "hybrid.yaml"), "virtual-cluster"
)
PAGES = sorted([*(DOCS / "howto").glob("*.md"), *(DOCS / "course").glob("*.md")])
STUDIES = {name: text for page in PAGES for name, text in examples(page.read_text()).items()}
SKILL = DATA / "SKILL.md"


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each line that is a command, without what a comment says."""
    lines = re.findall(r"^(?: {4}| *)transect (.+?)(?: +#.*)?$", text, re.MULTILINE)
    return [line.split() for line in lines]


def options_of(name: str) -> set[str]:
    group: Any = typer.main.get_command(app)
    return {option for one in group.commands[name].params for option in (*one.opts, *one.secondary_opts)}


def test_every_howto_has_its_page_in_the_list():
    listed = (DOCS / "howto/index.md").read_text()
    assert not [
        page.name for page in (DOCS / "howto").glob("*.md") if f"({page.name})" not in listed and page.stem != "index"
    ]
    assert len(STUDIES) >= 11


@pytest.mark.env
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_a_page_is_valid_and_has_something_to_run(name, tmp_path, transect):
    (tmp_path / name).write_text(STUDIES[name])
    # Of the study that reads logs.
    (tmp_path / "logs/alpha").mkdir(parents=True)
    (tmp_path / "logs/alpha/one.log").write_text("")
    code, out, err = transect("check", tmp_path / name, "--system", SYSTEMS.get(name, "laptop"), "--json")
    told = json.loads(out)
    assert code == 0 and told["empty_grids"] == {}, err
    # Its questions are decided: three repeats or more on both sides of each pair, or none is compared.
    code, out, err = transect("check", tmp_path / name, "--system", SYSTEMS.get(name, "laptop"))
    assert "have fewer than" not in out


@pytest.mark.env
def test_the_edit_of_the_tutorial_fits_the_study_that_init_writes(tmp_path, transect):
    edit = re.findall(
        r"<!-- edit of the study .*? -->\n```yaml\n(.*?)^```", (DOCS / "tutorial.md").read_text(), re.M | re.S
    )
    code, _, err = transect("init", tmp_path / "mine", "--name", "mine", "--yes", "--scheduler", "none")
    assert code == 0, err
    study, system = tmp_path / "mine/config/studies/first.yaml", tmp_path / "mine/config/systems/mine.yaml"
    written = yaml.safe_load(study.read_text())
    study.write_text(yaml.safe_dump(written | yaml.safe_load(edit[0])))
    code, out, err = transect("check", study, "--system", system, "--json")
    cells = {one["cell"].partition("~")[0] for one in json.loads(out)["cells"]}
    assert code == 0 and {f"digits-cnn.{name}.single.n1x1.b64.fp32" for name in ("numpy", "torch")} <= cells, err


@pytest.mark.parametrize("page", [SKILL, DOCS / "tutorial.md", *PAGES], ids=lambda page: page.name)
def test_options_exist(page: Path):
    for name, *words in commands_in(page.read_text()):
        assert {word for word in words if word.startswith("-")} <= options_of(name), name


def keys_of(value: Any) -> set[str]:
    """Return the keys of all mappings in it."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


@pytest.mark.env
def test_the_page_for_agents_names_keys_that_a_summary_has(tmp_path, transect):
    _, folder = unpack(ROOT / "tests/data/results/0.1.0.tar.gz", tmp_path / "results")
    code, out, err = transect("report", folder, "--json")
    assert code == 0, err
    text = SKILL.read_text()
    said = text.partition("summary.json\n")[2].partition("## Exit codes")[0]
    assert {"failures", "answers", "findings", "decisions", "banner", "counts", "run_again"} <= set(
        words := re.findall(r"`(\w+)`", said)
    )
    # Confidences are values.
    assert set(words) - {one.value for one in Confidence} <= keys_of(json.loads(out))
    assert text.count("\n") <= 50
