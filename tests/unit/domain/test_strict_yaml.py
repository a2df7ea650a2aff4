"""What a file of ours may hold, and how what it may not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.domain.errors import BadInput
from transect.domain.strict_yaml import load_model, load_yaml
from transect.domain.system import System
from transect.planning.parameters import resolve
from transect.planning.study import load_study


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


PLAIN = {
    "1e-3": 0.001,
    "-1.5E+3": -1500.0,
    ".5": 0.5,
    "1.": 1.0,
    "+12": 12,
    "0": 0,
    "0x1F": 31,
    "true": True,
    "False": False,
    "~": None,
    "": None,
    ".inf": float("inf"),
    # What YAML 1.1 reads as 8, 90, 1000, 1.5, true, false, and a date.
    "010": "010",
    "1:30": "1:30",
    "1_000": "1_000",
    "01.5": "01.5",
    "yes": "yes",
    "Off": "Off",
    "2026-11-20": "2026-11-20",
    "0o17": "0o17",
    "n": "n",
    "'5'": "5",
}


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_are_read_as_in_yaml_1_2(tmp_path, text):
    found = load_yaml(written(tmp_path, f"key: {text}\n"))["key"]
    assert found == PLAIN[text] and type(found) is type(PLAIN[text])


UNREADABLE = {
    "NUL byte": (b"a: 1\nb: \0\n", "file.yaml:2", "U+0000"),
    "escape byte": (b"a: \x1b[31m\n", "file.yaml:1", "U+001B"),
    "5,000 open brackets": ("a: " + "[" * 5000, "file.yaml", "nested too deeply"),
    "5,000 brackets": ("a: " + "[" * 5000 + "]" * 5000, "file.yaml", "nested too deeply"),
    "a number of 5,000 digits": ("a: " + "9" * 5000, "file.yaml", "digits"),
    "a list as a key": ("{[a]: 1}", "file.yaml:1", "cannot be a key"),
    "a number as a key": ("a: {1: x}", "file.yaml:1", "key 1: expected text"),
    "a truth value as a key": ("true: x", "file.yaml:1", "key true: expected text"),
    "an anchor inside itself": ("a: &x {y: *x}", "file.yaml:1", "holds itself"),
    "another tag": ("a: !!set {b}", "file.yaml:1", "not supported"),
    "a Python tag": ("a: !!python/name:os.system", "file.yaml:1", "not supported"),
    "a wrong tag": ("a: !!int abc", "file.yaml", "cannot be read"),
    "an octal of YAML 1.1": ("a: !!int 010", "file.yaml:1", "'010' cannot be read as !!int"),
    "a time of YAML 1.1": ("a: !!float 1:30.5", "file.yaml:1", "cannot be read as !!float"),
    "an empty number": ("a: !!int ''", "file.yaml:1", "cannot be read as !!int"),
    "no truth value": ("a: !!bool foo", "file.yaml:1", "cannot be read as !!bool"),
    "no null": ("a: !!null foo", "file.yaml:1", "cannot be read as !!null"),
    "a hexadecimal number of 5,000 digits": ("a: 0x" + "f" * 5000, "file.yaml:1", "digits"),
    "a key twice in what is merged": ("a: {<<: {x: 1, x: 2}}", "file.yaml:1", "twice"),
    "a number as a key in what is merged": ("a: {<<: {1: x}}", "file.yaml:1", "expected text"),
    "half a character": ('a: "\\ud800"', "file.yaml:1", "no text"),
    "an escaped NUL": ('a: "x\\0y"', "file.yaml:1", "no text"),
    "not UTF-8": (b"a: \xff", "file.yaml", "cannot be read"),
    "an unknown alias": ("a: *b", "file.yaml:1", "undefined alias"),
    "two documents": ("a: 1\n---\na: 2\n", "file.yaml:2", "another document"),
    "merging a number": ("a: {<<: 5}", "file.yaml:1", "mapping"),
    "merging twice": ("a: &a {x: 1}\nb: {<<: *a, <<: *a}", "file.yaml:2", "twice"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_named_with_its_place(tmp_path, name):
    text, *expected = UNREADABLE[name]
    with pytest.raises(BadInput) as raised:
        load_yaml(written(tmp_path, text))
    assert all(part in str(raised.value) for part in expected), str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_few_lines_of_aliases_do_not_stand_for_a_million_values(tmp_path):
    lines = ["a0: &a0 [" + "1, " * 10 + "]"]
    lines += [f"a{n}: &a{n} [" + f"*a{n - 1}, " * 10 + "]" for n in range(1, 12)]
    with pytest.raises(BadInput, match="more than 1,000,000 values"):
        load_yaml(written(tmp_path, "\n".join(lines)))


def test_merge_keys_work_and_a_key_of_its_own_wins(tmp_path):
    text = "a: &a {x: 1, y: 2}\nb: &b {z: 5, x: 7}\nc: {<<: *a, y: 3}\nd: {y: 4, <<: [*a, *b]}\n"
    found = load_yaml(written(tmp_path, text))
    assert found["c"] == {"x": 1, "y": 3}
    assert found["d"] == {"x": 1, "y": 4, "z": 5}


def test_an_anchor_in_what_is_merged_is_a_mapping_as_any_other(tmp_path):
    found = load_yaml(written(tmp_path, "b: &b {k: 0}\nc: {<<: &a {<<: *b, k: 1}}\nd: *a\n"))
    assert found["c"] == found["d"] == {"k": 1}


def test_a_tag_that_says_what_stands_there_changes_nothing(tmp_path):
    found = load_yaml(written(tmp_path, "a: !!int '5'\nb: !!float 5\nc: !!str 5\nd: !!null ~\n"))
    assert found == {"a": 5, "b": 5.0, "c": "5", "d": None} and type(found["b"]) is float


# What stands in a file, what is expected, what it was read as, and how to write it.
COERCED = {
    "nodes: true": ("valid integer", "found true"),
    "nodes: 010": ("valid integer", "'010'", "write 10"),
    "block_minutes: 1:30": ("valid integer", "'1:30'", "write 90"),
    "memory_mb_per_node: 1_000": ("valid integer", "'1_000'", "write 1000"),
    "gpus_per_node: '4'": ("valid integer", "'4'", "write 4 without quotes"),
    "cores_per_node: 4.0": ("valid integer", "4.0", "write 4"),
    "exclusive: yes": ("valid boolean", "'yes'", "write true"),
    "exclusive: 1": ("valid boolean", "found 1"),
    "exclusive: 'false'": ("valid boolean", "'false'", "write false without quotes"),
    "partition: 5": ("valid string", "found 5", "put it in quotes"),
    "account: true": ("valid string", "found true", "put it in quotes"),
    "modules: cuda": ("valid array", "'cuda'"),
}


@pytest.mark.parametrize("line", COERCED)
def test_no_value_of_a_system_becomes_one_of_another_type(tmp_path, line):
    with pytest.raises(BadInput) as raised:
        load_model(written(tmp_path, f"name: here\n{line}\n"), System)
    key = line.partition(":")[0]
    assert f"key '{key}'" in str(raised.value)
    assert all(part in str(raised.value) for part in COERCED[line]), str(raised.value)


STUDY = "name: s\nlimits: {seconds: %s}\ntrain:\n  repeats: %s\n"


@pytest.mark.parametrize(
    ("seconds", "repeats", "told"),
    [
        ("1:30", "1", "limits.seconds"),
        ("'30'", "1", "limits.seconds"),
        ("true", "1", "limits.seconds"),
        (".nan", "1", "limits.seconds"),
        ("30", "'2'", "train.repeats"),
        ("30", "2.0", "train.repeats"),
        ("30", "true", "train.repeats"),
    ],
)
def test_no_value_of_a_study_becomes_one_of_another_type(tmp_path, seconds, repeats, told):
    with pytest.raises(BadInput) as raised:
        load_study(written(tmp_path, STUDY % (seconds, repeats)))
    assert f"key '{told}'" in str(raised.value)


def test_a_whole_number_and_an_exponent_are_numbers(tmp_path):
    study = load_study(written(tmp_path, STUDY % ("30", "2")))
    assert study.limits.seconds == 30.0
    assert load_study(written(tmp_path, STUDY % ("1e2", "2"))).limits.seconds == 100.0


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("batch", True, "found true"),
        ("epochs", "010", "write 10"),
        ("learning_rate", "0.5", "write 0.5 without quotes"),
        ("learning_rate", True, "found true"),
        ("epochs", 2.0, "write 2"),
        ("momentum", float("nan"), "finite"),
        ("optimiser", 5, "in quotes"),
        ("batch", 0, "greater than 0"),
    ],
)
def test_no_hyper_parameter_becomes_one_of_another_type(tmp_path, key, value, told):
    with pytest.raises(BadInput) as raised:
        resolve("iris-mlp", {key: value}, tmp_path / "s.yaml")
    assert f"s.yaml: key 'workloads.iris-mlp.{key}'" in str(raised.value)
    assert told in str(raised.value)
    assert resolve("iris-mlp", {"learning_rate": 1}, tmp_path).learning_rate == 1.0
