"""A study's own training scripts: what is refused, what is skipped, and what makes their records stale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cell_jobs import make_job
from factories import plan_study
from transect.domain.errors import BadInput
from transect.engine.job import load_job
from transect.engine.stage import RUNNERS
from transect.engine.store import fingerprint_of
from transect.planning import code_hash
from transect.planning.expand import reason_to_skip
from transect.planning.plan import Planned, StudyPlan
from transect.training.script_workload import script_of

KEYS = 'script: train.py, arguments: [--seed, "{seed}"], data: [data], environment: base, batch: 64, target: 0.9'
STUDY = """
name: s
workloads:
  mine: {{{keys}}}
train: {{repeats: 1, grids: [{{workloads: [mine], frameworks: [{framework}], strategies: [single], {grid}}}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1,2\n")
    (tmp_path / "train.py").write_text("import model\n")
    (tmp_path / "model.py").write_text("import layers\nSETTINGS = 'settings.json'\n")
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "layers.py").write_text("")
    (tmp_path / "other.py").write_text("")
    return tmp_path


def plan(folder: Path, keys: str = KEYS, grid: str = "ranks: [1]", framework: str = "script") -> StudyPlan:
    for cached in (code_hash._text, code_hash._imports, code_hash._neighbours, code_hash._closure):
        cached.cache_clear()
    code_hash._hash_sources.cache_clear()
    code_hash._file_hash.cache_clear()
    made: StudyPlan = plan_study(folder, STUDY.format(keys=keys, grid=grid, framework=framework))
    return made


def one(made: StudyPlan) -> Planned:
    (cell,) = made
    return cell


def state(folder: Path, monkeypatch: pytest.MonkeyPatch, keys: str = KEYS) -> tuple[str, list[str]]:
    """Return what the cell's record would hold by: the fingerprint, and what its inputs are."""
    # What a process has hashed stays: each look stands for a process of its own.
    monkeypatch.setattr("transect.planning.sources._KNOWN", {})
    made = plan(folder, keys)
    stamp = made.paths.environment(one(made).environment)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text('{"python": "python", "status": "ok"}')
    return fingerprint_of(load_job(one(made).spec, made.paths), RUNNERS.get("train"))


EDITS: dict[str, Callable[[Path], object]] = {
    "the script": lambda folder: (folder / "train.py").write_text("import model  # and no more\n"),
    "a module that it imports": lambda folder: (folder / "model.py").write_text("import layers, os\n"),
    "a module that this one imports": lambda folder: (folder / "layers.py").write_text("N = 2\n"),
    "a file that it names": lambda folder: (folder / "settings.json").write_text("[]"),
    "a file in its data": lambda folder: (folder / "data" / "x.csv").write_text("1,3\n"),
    "a new file in its data": lambda folder: (folder / "data" / "y.csv").write_text("1,3\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_runs_it_again(folder: Path, monkeypatch: pytest.MonkeyPatch, edit: str) -> None:
    before = state(folder, monkeypatch)
    assert state(folder, monkeypatch) == before
    EDITS[edit](folder)
    assert state(folder, monkeypatch)[0] != before[0]


def test_other_words_run_it_again_and_other_files_do_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(folder, monkeypatch)
    for old, new in (
        ("--seed", "--start"),
        ("0.9", "0.8"),
        ("base", "text"),
        ("batch: 64", "variables: {A: b}, batch: 64"),
    ):
        assert state(folder, monkeypatch, KEYS.replace(old, new))[0] != before[0], new
    (folder / "other.py").write_text("N = 3\n")
    assert state(folder, monkeypatch) == before


def test_an_edit_of_one_script_leaves_the_others_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "batch: 64, target: 0.9, environment: base, scripts: {a: {script: train.py}, b: {script: other.py}}"

    def looks() -> dict[str, str]:
        monkeypatch.setattr("transect.planning.sources._KNOWN", {})
        return {planned.cell.framework: planned.fingerprint for planned in plan(folder, keys, framework="a, b")}

    before = looks()
    (folder / "other.py").write_text("N = 3\n")
    after = looks()
    assert after["a"] == before["a"] and after["b"] != before["b"]


def test_words_in_braces_are_those_of_the_cell(folder: Path) -> None:
    keys = KEYS.replace("{seed}", "{seed} {ranks} {batch} {batch_per_rank} {precision} {X}")
    keys += ", precisions: {amp-bf16: bf16-mixed}"
    cell = one(plan(folder, keys, "ranks: [2], batches: [32], precisions: [amp-bf16]")).cell
    script = script_of(cell)
    assert script is not None
    assert script.filled(script.arguments[1], cell, 5) == "5 2 32 16 bf16-mixed {X}"


REFUSED = {
    "no script": ({"train.py": "none.py"}, r"workloads\.mine\.script: .*none\.py: expected a file of Python"),
    "no Python": ({"train.py": "data/x.csv"}, r"workloads\.mine\.script: .*x\.csv: expected a file of Python"),
    "no data": ({"[data]": "[nothing]"}, r"workloads\.mine\.data: .*nothing: no such file or folder"),
    "all of the study": ({"[data]": "[.]"}, r"workloads\.mine\.data: '\.' holds the study itself"),
    "a slip in a key": ({"arguments": "argument"}, r"workloads\.mine: unknown key 'argument': did you mean 'arguments'"),
    "a slip in braces": ({"{seed}": "{sed}"}, r"workloads\.mine\.arguments: unknown word in braces 'sed': did you mean"),
    "no batch": ({", batch: 64": ""}, r"key 'workloads\.mine\.batch' is missing"),
    "no target": ({", target: 0.9": ""}, r"key 'workloads\.mine\.target' is missing"),
    "no environment": ({"base": "bass"}, r"workloads\.mine\.environment: unknown environment 'bass': did you mean 'base'"),
    "a metric": ({"0.9": "0.9, metric: acuracy"}, r"workloads\.mine\.metric: 'acuracy' is none of .*accuracy"),
    "a pattern": ({"0.9": "0.9, epoch_line: '('"}, r"epoch_line: '\(' is no regular expression"),
    "a group": ({"0.9": "0.9, epoch_line: '(?P<epoch>.)'"}, r"epoch_line: .* lacks the group \(\?P<metric>…\)"),
    "a precision": ({"0.9": "0.9, precisions: {fp31: x}"}, r"workloads\.mine\.precisions: unknown precision 'fp31'"),
    "a rank": ({"0.9": "0.9, variables: {RANK: '0'}"}, r"variables: RANK follows from the cell's ranks and threads"),
    "threads": ({"0.9": "0.9, variables: {MKL_NUM_THREADS: '8'}"}, r"variables: MKL_NUM_THREADS follows from the cell's"),
    "both": ({"0.9": "0.9, scripts: {a: {}}"}, r"has both `script` and `scripts`"),
    "a framework's name": ({"script: train.py": "scripts: {torch: {script: train.py}}"}, r"framework 'torch' is there already"),
    "an accuracy": ({"0.9": "90"}, r"workloads\.mine\.quality_target': an accuracy is at most 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named(folder: Path, case: str) -> None:
    changes, message = REFUSED[case]
    keys = KEYS
    for old, new in changes.items():
        assert old in keys
        keys = keys.replace(old, new, 1)
    with pytest.raises(BadInput, match=message):
        plan(folder, keys)


def test_all_that_is_wrong_is_said_at_once(folder: Path) -> None:
    keys = 'script: none.py, arguments: ["{sed}"], data: [nothing], batch: 0, targets: 1'
    with pytest.raises(BadInput) as caught:
        plan(folder, keys)
    text = str(caught.value)
    for part in ("none.py", "'sed'", "nothing", "mine.batch", "'targets'", "mine.target' is missing"):
        assert part in text, part


SKIPPED = {
    "precisions: [bf16]": "train.py is not told of bf16",
    "batches: [32]": "train.py is not told of batch 32",
    "inputs: [synthetic]": "it cannot be asked for input synthetic",
    "learning_rate_rule: linear": "it cannot be asked for learning rate rule linear",
    "ranks: [3]": "single runs on 1 rank",
}


@pytest.mark.parametrize("grid", SKIPPED)
def test_what_a_script_is_not_told_is_skipped(folder: Path, grid: str) -> None:
    reason = reason_to_skip(one(plan(folder, grid=grid)).cell)
    assert reason is not None and SKIPPED[grid] in reason


def test_no_framework_of_ours_trains_it_and_it_trains_nothing_else(folder: Path) -> None:
    assert "mine is trained by its scripts alone: script" in str(
        reason_to_skip(one(plan(folder, framework="numpy")).cell)
    )
    text = STUDY.format(keys=KEYS, grid="ranks: [1]", framework="script").replace("[mine]", "[mine, iris-mlp]")
    reasons = [reason_to_skip(planned.cell) for planned in plan_study(folder, text) if planned.cell.stage == "train"]
    assert reasons.count(None) == 1
    assert any("trains what it is written for, not iris-mlp" in str(reason) for reason in reasons)


def test_it_takes_nothing_from_other_cells(folder: Path) -> None:
    planned = one(plan(folder))
    assert planned.inputs == {} and planned.environment == "base"
    assert planned.spec["parameters"] == {"batch": 64, "quality_target": 0.9}


def test_in_a_container_it_finds_what_it_imports(folder: Path) -> None:
    planned = one(plan(folder))
    image = {"image": str(folder / "image.sif"), "wrapper": "apptainer"}
    job = make_job(folder / "results", planned.cell, facts=image, **{"system": {}, "path": planned.spec["path"]})
    assert any(word.split(":")[0] == str(folder) for word in job.wrap()[0])
