"""Labels of hosts in front of lines: each host's output is read as if it stood alone."""

from __future__ import annotations

import random

import pytest
from hpc_logs import STREAM
from log_scan import scan
from whole_logs import LOGS as WHOLE

from transect.hpc import scan as scanning
from transect.hpc.base import Run

# A training on several hosts is one run: its parsers know the labels of its launchers.
TRAININGS = {"dl-training", "mlperf-training", "mlperf-hpc", "horovod", "tf-cnn-benchmarks", "onnxruntime-perf-test"}
# A job of fio may be called as a label looks.
LOGS = {n: log.text for n, log in WHOLE.items() if log.text.lstrip()[0] not in "{[" and log.benchmark != "fio"}


def facts(runs: list[Run]) -> list[object]:
    return [(run.benchmark, run.variant, run.status, run.version, run.suspicions, run.metrics) for run in runs]


def labelled(text: str, label: str) -> str:
    return "".join(f"{label}{line}\n" for line in text.rstrip("\n").split("\n"))


def together(rng: random.Random, texts: list[str]) -> str:
    """Lines of several programs as they come."""
    waiting = [list(reversed(text.rstrip("\n").split("\n"))) for text in texts]
    found = []
    while any(waiting):
        found.append(rng.choice([lines for lines in waiting if lines]).pop() + "\n")
    return "".join(found)


@pytest.mark.parametrize(
    "label",
    [
        "cn-0042.cluster.example.org: ",
        "10.1.2.3: 0: ",
        "worker-1  | ",
        "[pod/hpl-0/main] ",
        "[prterun-node01-12345@1,0]<stdout>: ",
        "Mon Nov 23 06:00:17 2026[1,0]<stdout>:",
    ],
)
def test_a_label_in_front_of_all_lines_changes_no_result(label: str) -> None:
    differing = [
        name for name, text in LOGS.items() if facts(scan(labelled(text, label))) != facts(scan(labelled(text, "")))
    ]
    assert not differing


def test_hosts_that_print_at_the_same_time_are_read_each_on_its_own() -> None:
    rng = random.Random(7)
    programs = sorted(name for name in LOGS if WHOLE[name].benchmark not in TRAININGS)
    assert len(programs) > 30
    for name in programs[::2]:
        alone = facts(scan(labelled(LOGS[name], "")))
        texts = [labelled(LOGS[name], f"node{host}: ") for host in (1, 2, 3)]
        if "unknown" not in str(alone):
            assert facts(scan(together(rng, texts))) == alone * 3, name


def test_a_long_file_is_split_between_its_labels() -> None:
    noise = "".join(f"node{n % 2}: step {n} of something else\n" for n in range(60_000))
    text = labelled(STREAM, "node0: ") + noise + labelled(STREAM, "node1: ")
    assert len(text) > 1.5e6
    assert [(run.status.value, run.line) for run in scan(text)] == [
        ("ok", 1 + scan(STREAM)[0].line - 1),
        ("ok", len(STREAM.splitlines()) + 60_000 + scan(STREAM)[0].line),
    ]


def test_a_benchmark_that_is_named_is_read_behind_labels_too() -> None:
    (run,) = scan(labelled(STREAM, "node1: "), "stream")
    assert (run.benchmark, run.status.value) == ("stream", "ok")


def test_hosts_beyond_what_is_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_HOSTS", 2)
    runs = scan("".join(labelled(STREAM, f"node{host}: ") for host in range(5)))
    assert [run.status.value for run in runs] == ["ok", "ok", "ok", "no-result"]
    assert "more than 2 hosts" in runs[-1].reason
