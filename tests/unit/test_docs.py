"""The documentation is in step with the code, and its examples work."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from doc_examples import ADDING, EXAMPLES, write_examples

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "results" / "README.md"])

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_REGISTRY_HOSTS = (
    "pypi.org",
    "pythonhosted",
    "npmjs",
    "crates.io",
    "proxy.golang",
    "anaconda",
    "docker.io",
    "download.pytorch",
    "index-url",
)
_MACHINE_PATHS = (*(f"/{name}/" for name in ("work", "root", "home")), "localhost", "127.0.0.1")


@cache
def generator() -> ModuleType:
    path = ROOT / "scripts" / "generate-docs.py"
    spec = importlib.util.spec_from_file_location("generate_docs", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """Return the anchors that a viewer makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_generated_pages_are_in_step():
    assert generator().stale_pages() == [], "run `make docs`"


def test_record_page_names_every_field_and_cause():
    from transect.domain.record import Cause, Record

    text = (ROOT / "docs" / "record.md").read_text()
    for name in [*Record.model_fields, *(cause.value for cause in Cause)]:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_relative_links_exist(page):
    missing = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        # A code host shows a folder; the site has none.
        shown = file.is_file() or (file.is_dir() and ROOT / "docs" not in file.parents)
        if not shown or (anchor and anchor not in anchors(file)):
            missing.append(target)
    assert not missing


def test_the_site_leads_to_every_page_once():
    """What is missing in the navigation is found by its links alone, and not by who looks for it."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2])
    led = [page for part in navigation for pages in part.values() for page in pages]
    names = [page if isinstance(page, str) else next(iter(page.values())) for page in led]
    assert sorted(names) == sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_pictures_are_files_that_come_along(page):
    assert not re.findall(r"!\[[^\]]*\]\(\w+:", _FENCE.sub("", page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_no_registry_hosts_and_no_machine_paths(page):
    text = page.read_text()
    assert not [word for word in (*_REGISTRY_HOSTS, *_MACHINE_PATHS) if word in text]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_exist(page):
    from transect.cli.main import COMMANDS

    known = {name for names in COMMANDS.values() for name in names}
    found = re.findall(r"(?:^ {4}|`|bin/)transect ([a-z]+(?:-[a-z]+)*)", page.read_text(), re.MULTILINE)
    assert set(found) <= known


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    found = re.findall(r"(?:^ {4}|`)make ([a-z]+)", page.read_text(), re.MULTILINE)
    assert set(found) <= targets


def test_the_page_of_commands_has_every_exit_code():
    from transect.domain import errors

    text = (ROOT / "docs" / "commands.md").read_text()
    for one in (errors.TransectError, errors.BadInput, errors.MissingDependency):
        assert re.search(rf"^\| {one.exit_code} \|", text, re.MULTILINE)


def test_what_is_public_can_be_imported():
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert len(names) > 40 and all(value is not None for value in names.values())


def test_change_log_and_citation_have_this_version():
    from transect import __version__

    assert f"## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_stage_of_the_page_is_the_one_that_can_be_copied():
    toy = ROOT / "tests/plugins/toy"
    for name in ("toys.yaml", *(f"toy/{part}.py" for part in ("cell", "stage", "payload", "report"))):
        assert EXAMPLES[name] == (toy / ("" if name.endswith("yaml") else "plugins") / name).read_text(), name


def test_examples_are_one_of_each_kind():
    decorators = re.findall(r"^@([A-Z]+)\.register", ADDING, re.MULTILINE)
    kinds = {
        "FRAMEWORKS",
        "STRATEGIES",
        "WORKLOADS",
        "DATASETS",
        "EXPORTERS",
        "RUNTIMES",
        "PARSERS",
        "BENCHMARKS",
        "LAUNCHERS",
        "FORMATS",
        "SPLITTERS",
        "CLASSIFIERS",
        "MEMORIES",
        "AGGREGATIONS",
        "METHODS",
        "WRAPPERS",
        "STAGES",
    }
    assert kinds == set(decorators)


_USE = """
from pathlib import Path
import numpy as np
from transect.federated.aggregations import AGGREGATIONS, Updates
from transect.federated.methods import METHODS, Terms
from transect.federated.turn import Turn
from transect.hpc.ingest import ingest
from transect.launch import LAUNCHERS, Request
from transect.launch.wrapping import image_fault, wrapped
from transect.text.classifiers import CLASSIFIERS, Task
from transect.text.formats import FORMATS
from transect.text.splitters import SPLITTERS, Rows
from transect.training.datasets import DATASETS
from transect.training.layers import shapes
from transect.training.workloads import WORKLOADS

(command, variables), = LAUNCHERS.get("numactl").processes(Request(command=["program"]))
assert command[0] == "numactl" and command[-1] == "program" and variables["WORLD_SIZE"] == "1"
argv, _ = wrapped("/image", wrapper="extra-bubblewrap", binds=["/data"], workdir="/data/run")
assert argv[0] == "bwrap" and argv[-6:] == ["--bind", "/tmp", "/tmp", "--chdir", "/data/run", "--"]
said = "bwrap: execvp python: No such file or directory"
assert image_fault("extra-bubblewrap", "/image", said) == f"image /image: {said}"
updates = Updates(vectors=np.array([[0.0, 8.0], [0.5, 0.0]]), counts=np.array([1, 1]), staleness=np.array([0, 0]))
assert AGGREGATIONS.get("extra-short").combine({"longest": 1.0}, updates, {}).tolist() == [0.25, 0.5]
turn = Turn(client=0, number=0, given=np.ones(2), rows=np.zeros((1, 1), int), seeds=np.zeros(1, int))
terms = Terms(settings={"mu": 0.5}, rate=0.1, steps=1, trained=np.ones(2, bool), personal=np.zeros(2, bool))
pulled = METHODS.get("extra-own-way").turn(terms, turn, np.zeros(2), np.zeros(2))
assert pulled.added(np.array([2.0, 4.0])).tolist() == [1.0, 2.0]
workload = WORKLOADS.get("wine-mlp")
assert workload.dataset in DATASETS
assert shapes(workload.layers, workload.sample)[-1] == (3,)
good, bad = FORMATS.get("extra-lines").tickets(Path("tickets.txt"), {}, 0)
assert (good.queue, good.messages[0].text, bad.cause) == ("printers", " no ink\\n", "no-label")
rows = Rows(np.zeros(4, int), np.zeros(4), np.zeros(4, int))
parts = SPLITTERS.get("extra-as-given").parts(rows, {"train": 0.5, "test": 0.25}, None)
assert parts["train"].tolist() == [0, 1] and parts["test"].tolist() == [2]
x, y = np.array([[2, 3], [2, 0]]), np.array([0, 1])
task = Task(x={"train": x, "test": x}, y={"train": y}, vectors=np.zeros((4, 1)), classes=("a", "b"),
            options={}, hyperparameters={}, seed=0, threads=1, device="cpu", out=Path(), predicted=("test",))
told = CLASSIFIERS.get("extra-length").fit(task).probabilities["test"]
assert np.allclose(told, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
run, = ingest([Path("extra.log")])
assert run.metrics[0].normalised.value == 12.5e9
"""


@pytest.mark.env
def test_examples_work(tmp_path):
    plugins = write_examples(tmp_path / "plugins")
    ruff, config = (
        [sys.executable, "-m", "ruff"],
        ["--no-cache", "--config", str(ROOT / "pyproject.toml"), str(plugins)],
    )
    for args in (["check", "--extend-ignore=D1,RUF012"], ["format", "--check"]):
        linted = subprocess.run([*ruff, *args, *config], capture_output=True, text=True)
        assert linted.returncode == 0, linted.stdout
    (tmp_path / "extra.log").write_text("noise\nEXTRA BENCH: 12.5 GB/s\n")
    (tmp_path / "tickets.txt").write_text("printers: no ink\nnothing\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TRANSECT_PLUGINS": str(plugins)}
    used = subprocess.run([sys.executable, "-c", _USE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert used.returncode == 0, used.stderr
    # The study names the folder by itself.
    del environment["TRANSECT_PLUGINS"]
    cells = []
    for name in sorted(one for one in EXAMPLES if one.endswith(".yaml")):
        (tmp_path / name).write_text(EXAMPLES[name])
        command = [sys.executable, "-m", "transect", "check", name, "--json"]
        check = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert check.returncode == 0, check.stderr
        cells += json.loads(check.stdout)["cells"]
    assert {one["skip"] for one in cells} == {None}
    told = " ".join(one["cell"] for one in cells)
    extras = {f"extra-{name}" for name in ("framework", "reduce-broadcast", "recompute", "runtime", "copy")}
    for name in (*extras, "wine-mlp", "torchscript-opset-13", "as-given", "by-length"):
        assert name in told
