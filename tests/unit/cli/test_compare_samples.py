"""`transect compare` on files that hyperfine, pyperf and asv wrote (tests/data/samples: real ones, without names of the machine)."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
ASV = SAMPLES / "results" / "made-up"
TIMES = [0.1 + 0.001 * place + 1e-9 * place**3 for place in range(6)]


@pytest.fixture
def facts(transect: Any) -> Any:
    """Return what compares files, as data."""

    def call(*given: object) -> tuple[int, dict[str, Any]]:
        code, out, err = transect("compare", *given, "--format", "json")
        assert out, err
        return code, json.loads(out)

    return call


def outcomes(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    [other] = facts["others"]
    return {line["cell"].partition("~")[0]: (line["outcome"], line["confidence"]) for line in other["lines"]}


def hyperfine(path: Path, **benchmarks: Any) -> Path:
    results = [{"command": name} | (v if isinstance(v, dict) else {"times": v}) for name, v in benchmarks.items()]
    path.write_text(json.dumps({"results": results}))
    return path


def test_commands_that_hyperfine_timed(facts):
    code, found = facts(SAMPLES / "hyperfine-base.json", SAMPLES / "hyperfine-slow.json")
    assert code == 4
    assert outcomes(found)["sum-squares"] == ("worse", "confirmed")
    # Its program failed on both sides: no time of it counts.
    assert outcomes(found)["fails"] == ("not comparable", "confirmed")
    assert found["base"]["studies"] == ["hyperfine"]


def test_a_process_of_pyperf_is_one_repeat_and_what_differs_is_told(facts):
    code, found = facts(SAMPLES / "pyperf-base.json", SAMPLES / "pyperf-slow.json")
    assert (code, outcomes(found)) == (4, {"sum": ("worse", "confirmed"), "work": ("worse", "confirmed")})
    runs = {line["cell"].partition("~")[0]: line["base"]["runs"] for line in found["others"][0]["lines"]}
    # Five processes of two values, and two times three of one; those that only calibrate do not count.
    assert runs == {"sum": 5, "work": 6}
    told = {each["fact"]: (each["base"], each["other"]) for each in found["others"][0]["differences"]}
    assert told["command of work"] == (["python3 -S work.py 100000"], ["python3 -S work.py 2000000"])


def test_a_round_of_asv_is_one_repeat_and_two_of_them_are_never_sure(facts):
    code, found = facts(ASV / "base.json", ASV / "slow.json")
    assert code == 4
    [other] = found["others"]
    said = {line["cell"].partition("~")[0]: line for line in other["lines"]}
    assert {line["base"]["runs"] for line in other["lines"] if line["confidence"] == "confirmed" and line["base"]} == {
        4
    }
    assert (said["suite.time_default"]["outcome"], said["suite.time_default"]["confidence"]) == ("worse", "provisional")
    assert said["suite.time_default"]["base"]["runs"] == 2
    # Parameters have their names from asv's own list of benchmarks.
    assert any("2 processes" in problem for problem in found["base"]["problems"])
    assert said["suite.time_fails"]["reason"].startswith("no usable result on either side: 1 of 1 repeats failed")
    assert "skipped" in next(line["reason"] for line in other["lines"] if "skipped" in line["reason"])


@pytest.mark.parametrize("other", ["slow.json", "plain.json"])
def test_a_file_of_asv_without_samples_says_so_and_is_never_sure(facts, other):
    code, found = (
        facts(ASV / "plain.json", ASV / other) if other == "slow.json" else facts(ASV / "base.json", ASV / other)
    )
    assert code == 5
    assert {confidence for outcome, confidence in outcomes(found).values() if outcome != "not comparable"} <= {
        "inconclusive",
        "provisional",
    }
    problems = found["base"]["problems"] + found["others"][0]["problems"]
    assert any("plain.json: the file has a single number of it and no samples" in problem for problem in problems)


def test_without_the_list_of_benchmarks_asv_has_its_usual_two_rounds(facts, tmp_path):
    for name in ("base", "slow"):
        shutil.copy(ASV / f"{name}.json", tmp_path)
    code, found = facts(tmp_path / "base.json", tmp_path / "slow.json")
    assert code == 5
    assert "confirmed" not in {c for outcome, c in outcomes(found).values() if outcome != "not comparable"}


def test_another_version_of_a_benchmark_of_asv_is_refused(facts, tmp_path):
    content = json.loads((ASV / "slow.json").read_text())
    content["results"]["suite.time_default"][2] = "0" * 64
    (tmp_path / "b.json").write_text(json.dumps(content))
    _, found = facts(ASV / "base.json", tmp_path / "b.json")
    [refused] = found["others"][0]["refused"]
    assert refused["cell"].startswith("suite.time_default")
    assert refused["unlike"][0]["setting"] == "code of the benchmark"


def test_benchmarks_pair_by_name_and_parameters_and_the_others_are_told(facts, tmp_path):
    base = hyperfine(tmp_path / "a.json", one=TIMES, gone=TIMES, sized={"times": TIMES, "parameters": {"n": "1"}})
    slow = [3 * time for time in TIMES]
    other = hyperfine(tmp_path / "b.json", one=slow, new=slow, sized={"times": slow, "parameters": {"n": "2"}})
    code, found = facts(base, other)
    assert (code, outcomes(found)) == (4, {"one": ("worse", "confirmed")})
    [beside] = found["others"]
    names = [[lone["cell"].partition("~")[0] for lone in beside[side]] for side in ("only_base", "only_other")]
    assert names == [["gone", "sized"], ["new", "sized"]]


def test_a_command_that_fails_on_one_side_alone_is_worse(facts, tmp_path):
    base = hyperfine(tmp_path / "a.json", one={"times": TIMES, "exit_codes": [0] * 6})
    # A signal has no exit code.
    other = hyperfine(tmp_path / "b.json", one={"times": [time / 9 for time in TIMES], "exit_codes": [1, None] * 3})
    code, found = facts(base, other)
    assert (code, outcomes(found)) == (4, {"one": ("worse", "confirmed")})


def test_a_copy_of_a_file_is_no_second_measurement(facts, tmp_path):
    for name in ("pyperf-base.json", "hyperfine-base.json"):
        shutil.copy(SAMPLES / name, tmp_path)
        code, found = facts(SAMPLES / name, tmp_path / name)
        assert code == 5
        assert found["others"][0]["same_measurement"]
        assert {outcome for outcome, _ in outcomes(found).values()} <= {"not comparable"}


def test_a_few_digits_that_are_alike_are_no_copy(facts, tmp_path):
    code, found = facts(hyperfine(tmp_path / "a.json", one=[0.1] * 6), hyperfine(tmp_path / "b.json", one=[0.1] * 6))
    assert (code, outcomes(found)) == (0, {"one": ("same", "confirmed")})


def test_the_format_is_known_by_content_whatever_the_name(facts, tmp_path):
    packed, odd = tmp_path / "a.html", tmp_path / "results.yaml"
    packed.write_bytes(gzip.compress((SAMPLES / "pyperf-base.json").read_bytes()))
    shutil.copy(SAMPLES / "pyperf-slow.json", odd)
    code, found = facts(packed, odd)
    assert (code, found["base"]["studies"]) == (4, ["pyperf"])


def spoilt(name: str, change: Callable[[dict[str, Any]], object]) -> bytes:
    content = json.loads((SAMPLES / name).read_text())
    change(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no whole JSON"),
        ((SAMPLES / "pyperf-base.json").read_bytes()[:900], "is no whole JSON"),
        (gzip.compress(b"{}", mtime=0)[:-3], "is no whole JSON"),
        (b"[" * 100_000, "is no whole JSON"),
        (b"\xff\xfe\x00", "is no whole JSON"),
        (b"[]", "no samples that are known"),
        (b'{"results": [{"name": "x", "times": [1.0]}]}', "no samples that are known"),
        (b'{"benchmarks": [{"name": "pytest-benchmark"}], "version": "5.1.0"}', "no samples that are known"),
        (b'{"results": []}', "results cannot be used"),
        (spoilt("hyperfine-base.json", lambda c: c["results"][0]["times"].__setitem__(2, "fast")), "results.0.times.2"),
        (spoilt("hyperfine-base.json", lambda c: c["results"][0]["times"].__setitem__(2, float("nan"))), "results.0.times.2"),
        (spoilt("hyperfine-base.json", lambda c: c["results"][0]["exit_codes"].pop()), "6 times and 5 exit codes"),
        (spoilt("hyperfine-base.json", lambda c: c["results"].append(c["results"][0])), "two benchmarks are called 'sum squares'"),
        (spoilt("pyperf-base.json", lambda c: c.update(version="9.0")), "version cannot be used"),
        (spoilt("pyperf-base.json", lambda c: c["benchmarks"][0]["metadata"].pop("name")), "has no name"),
        (spoilt("pyperf-base.json", lambda c: [run.pop("values", 0) for run in c["benchmarks"][0]["runs"]]), "has no values"),
        (spoilt("results/made-up/base.json", lambda c: c.update(version=1)), "version cannot be used"),
        (
            spoilt("results/made-up/base.json", lambda c: c["results"]["suite.time_default"].__setitem__(3, "today")),
            "'suite.time_default': its started_at cannot be used",
        ),
        (
            spoilt("results/made-up/base.json", lambda c: c["results"]["suite.Sums.time_sum"][0].pop()),
            "3 results and 4 samples for 4 parameters",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_one_error(transect, tmp_path, content, said):
    (tmp_path / "odd.json").write_bytes(content)
    code, out, err = transect("compare", SAMPLES / "hyperfine-base.json", tmp_path / "odd.json")
    assert (code, out) == (2, "")
    assert f"{tmp_path}/odd.json: " in err
    assert said in err
    assert err.count("transect: ") == 1


def test_what_is_not_there_given_twice_or_would_be_overwritten_is_refused(transect, tmp_path):
    shutil.copy(SAMPLES / "pyperf-base.json", tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    (tmp_path / "link.json").symlink_to("a.json")
    for given, said in (
        ((tmp_path / "b.json",), "No such file"),
        ((tmp_path / "link.json",), "is the same file as"),
        ((SAMPLES / "pyperf-slow.json", "--html", tmp_path / "link.json"), "is among the results"),
    ):
        code, _, err = transect("compare", tmp_path / "a.json", *given)
        assert code == 2
        assert said in err
    assert (tmp_path / "a.json").read_bytes() == before


def test_a_name_from_a_file_is_no_markup_and_no_command_of_a_terminal(transect, tmp_path):
    name = "<img src=x onerror=alert(1)> @all \x1b[2J\ud800"
    base, other = (hyperfine(tmp_path / f"{n}.json", **{name: [t * (n + 1) for t in TIMES]}) for n in range(2))
    code, out, _ = transect("compare", base, other, "--html", tmp_path / "p.html", "--markdown", tmp_path / "p.md")
    assert code == 4
    assert "\x1b" not in out
    page = (tmp_path / "p.html").read_text()
    assert "<img src=x" not in page
    assert "img src=x" in page
    assert "@all" not in (tmp_path / "p.md").read_text().replace("@\u200ball", "")


def test_a_secret_in_a_command_or_a_variable_is_not_published(transect, tmp_path):
    name = "curl -H 'Authorization: Bearer abcdefgh12345' https://me:hidden99@example.org"
    for side, factor in (("a", 1), ("b", 3)):
        hyperfine(tmp_path / f"{side}.json", **{name: [factor * time for time in TIMES]})
    code, out, _ = transect("compare", tmp_path / "a.json", tmp_path / "b.json", "--markdown", tmp_path / "s.md")
    assert code == 4
    published = out + (tmp_path / "s.md").read_text()
    for side in ("base", "slow"):
        content = json.loads((ASV / f"{side}.json").read_text()) | {"env_vars": {"API_KEY": f"topsecret-{side}"}}
        (tmp_path / f"{side}.json").write_text(json.dumps(content))
    published += transect("compare", tmp_path / "base.json", tmp_path / "slow.json", "--format", "json")[1]
    assert "example.org" in published
    assert not [word for word in ("abcdefgh12345", "hidden99", "topsecret") if word in published]


def test_a_file_of_asv_whose_benchmarks_have_no_point_is_one_error(tmp_path, transect):
    content = json.loads((ASV / "base.json").read_text())
    content["results"] = {"suite.time_none": [[], [[]]]}
    content["result_columns"] = ["result", "params"]
    (tmp_path / "none.json").write_text(json.dumps(content))
    code, out, err = transect("compare", ASV / "base.json", tmp_path / "none.json")
    assert (code, out) == (2, "")
    assert "none.json: no benchmark in it has a result" in err and "Traceback" not in err


@pytest.mark.parametrize("option", ["--html", "--markdown", "--badge", "--junit"])
def test_a_pipe_a_device_and_a_folder_are_no_outputs(tmp_path, transect, option):
    os.mkfifo(tmp_path / "pipe")
    for given in (tmp_path / "pipe", tmp_path, "", "/dev/none"):
        code, out, err = transect("compare", SAMPLES / "pyperf-base.json", SAMPLES / "pyperf-slow.json", option, given)
        assert (code, out) == (2, "")
        assert err.startswith(f"transect: {option} '{given or '.'}': is no file")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    "names", [("pyperf-base.json", "pyperf-again.json"), ("results/made-up/base.json", "results/made-up/again.json")]
)
def test_two_measurements_of_one_thing_are_not_told_apart(facts, names):
    code, found = facts(*(SAMPLES / name for name in names))
    assert code == 5
    assert {"open"} <= {outcome for outcome, _ in outcomes(found).values()} <= {"open", "not comparable"}


def test_a_scan_of_hyperfine_is_a_benchmark_for_each_value(facts, tmp_path):
    content = json.loads((SAMPLES / "hyperfine-parameters.json").read_text())
    # A name of one's own is the same for all values: the parameter alone tells them apart.
    for result in content["results"]:
        result["command"] = "squares"
    (tmp_path / "a.json").write_text(json.dumps(content))
    content["results"][1]["times"] = [9 * time for time in content["results"][1]["times"]]
    (tmp_path / "b.json").write_text(json.dumps(content))
    code, found = facts(tmp_path / "a.json", tmp_path / "b.json")
    assert code == 4
    [beside] = found["others"]
    # The other value was not measured again.
    assert (len(beside["lines"]), len(beside["same_measurement"])) == (1, 1)
    assert beside["lines"][0]["outcome"] == "worse"
