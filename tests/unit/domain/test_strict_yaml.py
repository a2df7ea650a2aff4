"""What a file of ours may hold, and how what it may not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.domain.errors import BadInput
from transect.domain.strict_yaml import load_model, load_yaml
from transect.domain.system import System
from transect.planning.parameters import resolve


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


PLAIN = {
    "1e-3": 0.001,
    "-1.5E+3": -1500.0,
    ".5": 0.5,
    "+12": 12,
    "0x1F": 31,
    "0o17": 15,
    "False": False,
    "~": None,
    "": None,
    ".inf": float("inf"),
    # What YAML 1.1 reads as 8, 90, true, false, false, and a date.
    "010": 10,
    "1:30": "1:30",
    "yes": "yes",
    "Off": "Off",
    "n": "n",
    "2026-11-20": "2026-11-20",
    "'5'": "5",
}


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_are_read_as_in_yaml_1_2(tmp_path, text):
    found = load_yaml(written(tmp_path, f"key: {text}\n"))["key"]
    assert found == PLAIN[text] and type(found) is type(PLAIN[text])


def _bomb(begin: str, end: str) -> str:
    """Return a text whose last key repeats the first 10^9 times."""
    lines = (f"a{i}: &a{i} {begin}{', '.join([f'*a{i - 1}'] * 10)}{end}\n" for i in range(1, 10))
    return "a0: &a0 {x: 1}\n" + "".join(lines)


UNREADABLE = {
    "aliases that stand for billions": (_bomb("[", "]"), "file.yaml", "aliases", "5,000,000"),
    "merges that stand for billions": (_bomb("{<<: [", "]}"), "file.yaml", "aliases", "5,000,000"),
    "escape byte": (b"a: \x1b[31m\n", "file.yaml"),
    "5,000 brackets": ("a: " + "[" * 5000 + "]" * 5000, "file.yaml"),
    "a list as a key": ("{[a]: 1}", "file.yaml"),
    "an anchor inside itself": ("a: &x {y: *x}", "file.yaml", "Circular"),
    "a Python tag": ("a: !!python/name:os.system", "file.yaml:1", "tag"),
    "no number": ("a: !!int ''", "file.yaml"),
    "a key twice": ("a: 1\nb: 2\na: 3", "file.yaml", "'a' stands twice"),
    "a key twice beside what is merged": ("a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}", "file.yaml:2", "'y' stands twice"),
    "a number as a key": ("a: {010: x}", "file.yaml:1", "put it in quotes"),
    "not UTF-8": (b"a: \xff", "file.yaml", "cannot be read"),
    "two documents": ("a: 1\n---\na: 2\n", "file.yaml:2", "another document"),
    "a login": ("a: 1\nb: https://me:hunter2@example.org/x", "file.yaml:2", "login"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_named_with_its_place(tmp_path, name):
    text, *expected = UNREADABLE[name]
    with pytest.raises(BadInput) as raised:
        load_yaml(written(tmp_path, text))
    assert all(part in str(raised.value) for part in expected), str(raised.value)
    assert "\x1b" not in str(raised.value) and "hunter2" not in str(raised.value)


def test_merge_keys_work_and_a_key_of_its_own_wins(tmp_path):
    text = "a: &a {x: 1, y: 2}\nb: &b {z: 5, x: 7}\nc: {<<: *a, y: 3}\nd: {y: 4, <<: [*a, *b]}\n"
    found = load_yaml(written(tmp_path, text))
    assert found["c"] == {"x": 1, "y": 3}
    assert found["d"] == {"x": 1, "y": 4, "z": 5}


def test_an_anchor_in_what_is_merged_is_a_mapping_as_any_other(tmp_path):
    found = load_yaml(written(tmp_path, "b: &b {k: 0}\nc: {<<: &a {<<: *b, k: 1}}\nd: *a\n"))
    assert found["c"] == found["d"] == {"k": 1}


# What stands in a file, what is expected, and what it was read as.
COERCED = {
    "nodes: true": ("valid integer", "found true"),
    "block_minutes: 1:30": ("valid integer", "'1:30'"),
    "cores_per_node: 4.0": ("valid integer", "4.0"),
    "exclusive: yes": ("valid boolean", "'yes'"),
    "partition: 5": ("valid string", "found 5"),
    "modules: cuda": ("valid array", "'cuda'"),
}


@pytest.mark.parametrize("line", COERCED)
def test_no_value_of_a_system_becomes_one_of_another_type(tmp_path, line):
    with pytest.raises(BadInput) as raised:
        load_model(written(tmp_path, f"name: here\n{line}\n"), System)
    key = line.partition(":")[0]
    assert f"key '{key}'" in str(raised.value)
    assert all(part in str(raised.value) for part in COERCED[line]), str(raised.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("batch", True, "found true"),
        ("learning_rate", "0.5", "found '0.5'"),
        ("epochs", 2.0, "found 2.0"),
        ("momentum", float("nan"), "finite"),
        ("batch", 0, "greater than 0"),
    ],
)
def test_no_hyper_parameter_becomes_one_of_another_type(tmp_path, key, value, message):
    with pytest.raises(BadInput) as raised:
        resolve("iris-mlp", {key: value}, tmp_path / "s.yaml")
    assert f"s.yaml: key 'workloads.iris-mlp.{key}'" in str(raised.value)
    assert message in str(raised.value)
    assert resolve("iris-mlp", {"learning_rate": 1}, tmp_path).learning_rate == 1.0
