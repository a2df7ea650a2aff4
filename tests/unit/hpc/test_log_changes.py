"""Logs that are cut, contradict themselves or say that they failed, of every parser: `log_changes.txt`."""

from __future__ import annotations

import re
from pathlib import Path

import network_logs as network
import pytest
import whole_logs
from learning_logs import megatron
from log_scan import made, scan

LOGS = {
    **{name: log.text for name, log in whole_logs.LOGS.items()},
    **{name: made(name) for name in ("docking", "sweep-allreduce", "sweep-bandwidth", "sweep-iallreduce")},
    "osu latency": network.OSU_LATENCY,
    "osu allreduce": network.OSU_ALLREDUCE,
    "osu iallreduce": network.OSU_IALLREDUCE,
    "osu mbw_mr": network.OSU_MBW_MR,
    "osu barrier": network.OSU_BARRIER,
    "imb pingpong": network.IMB_HEAD + network.IMB_PINGPONG + network.IMB_END,
    "imb allreduce": network.IMB_HEAD + network.IMB_ALLREDUCE + network.IMB_END,
    "nccl-tests wrong": network.nccl(wrong="12"),
    "nccl-tests of one": network.nccl(n=1),
    "megatron of three": megatron(3),
}


def _cases() -> list[tuple[str, str, str, str]]:
    found, log = [], ""
    for line in Path(__file__).with_name("log_changes.txt").read_text().splitlines():
        if line.startswith("= "):
            log = line[2:]
        elif line and not line.startswith("#"):
            status, reason, change = line.split(" | ", 2)
            found.append((log, status, "" if reason == "-" else reason, change))
    return found


def _changed(log: str, change: str) -> str:
    kind, _, edit = change.partition(": ")
    words, _, new = edit.replace(r"\n", "\n").replace(r"\t", "\t").partition(" =>")
    if kind in ("before", "after"):
        return words + log if kind == "before" else log + words
    if kind in ("cut", "from"):
        at = log.index(words)
        return log[:at] + new[1:] if kind == "cut" else log[at:]
    pattern, _, new = (edit if kind == "1" else change).partition(" =>")
    return re.sub(pattern, new[1:], log, count=kind == "1", flags=re.MULTILINE)


@pytest.mark.parametrize(("log", "status", "reason", "change"), _cases())
def test_status_and_reason(log: str, status: str, reason: str, change: str) -> None:
    text = LOGS[log]
    for step in change.split(" && ") if change != "as it is" else []:
        before, text = text, _changed(text, step)
        assert text != before
    run = scan(text)[-1]
    messages = "; ".join((run.reason, *run.suspicions))
    assert (run.status, reason in messages) == (status, True), messages
