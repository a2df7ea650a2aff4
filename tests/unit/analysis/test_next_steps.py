"""Every cause has a next step, commands are safe to paste, and messages that say the same stand together."""

from __future__ import annotations

import re
import shlex

import pytest

from factories import make_record, train_cell
from transect.domain.record import Cause, Record, Status
from transect.report.topics.study.failure_facts import endings
from transect.report.topics.study.next_steps import NEXT_STEPS, command_of

EVERY = list(NEXT_STEPS.values())


def ended(message: str, cause: Cause, batch: int = 1, status: Status = Status.FAILED) -> Record:
    return make_record(train_cell(batch=batch), status=status, cause=cause, message=message)


def test_every_cause_has_a_next_step() -> None:
    assert set(NEXT_STEPS) == set(Cause)
    for step in EVERY:
        for text in (step.meaning, step.action):
            assert text.endswith(".") and text[0].isupper(), text
        assert step.command.startswith(("transect ", "make report"))


def test_every_command_is_one_that_there_is() -> None:
    from transect.cli.main import COMMANDS

    known = {name for names in COMMANDS.values() for name in names}
    texts = [text for step in EVERY for text in (step.command, step.action)]
    named = {name for text in texts for name in re.findall(r"transect ([a-z-]+)", text)}
    assert named and named <= known


def test_every_key_that_a_next_step_names_is_in_the_documentation() -> None:
    from transect.domain.paths import ROOT

    pages = (ROOT / "docs/studies.md").read_text() + (ROOT / "docs/plugins.md").read_text()
    keys = {key for step in EVERY for key in re.findall(r"`([a-z]+(?:_[a-z]+)+|limits\.\w+)`", step.action)}
    assert {"memory_mb_per_node", "limits.seconds", "limits.memory_mb"} <= keys
    assert [key for key in keys if f"`{key}`" not in pages and f".{key}`" not in pages] == []


@pytest.mark.parametrize("name", ["a b", "$(touch x)", "a'b", "{cell}", "x;rm -rf y"])
def test_a_command_takes_strange_names_as_one_word(name: str) -> None:
    for step in EVERY:
        words = shlex.split(command_of(step, study=name, cell=f"train/{name}"))
        plain = shlex.split(command_of(step, study="quick", cell="train/one"))
        assert len(words) == len(plain)
        for word, plain_word in zip(words, plain, strict=True):
            assert word == plain_word.replace("quick", name).replace("train/one", f"train/{name}")


def test_messages_that_differ_by_ids_paths_and_numbers_are_one() -> None:
    [ending] = endings(
        ended(f"died at 0x{batch:x}00 in /tmp/run{batch}/log after {batch}.5 s", Cause.CRASH, batch)
        for batch in range(1, 8)
    )
    [message] = ending.messages
    assert len(message.records) == 7


def test_failures_come_first_and_one_that_holds_up_others_counts_them() -> None:
    root = ended("exit code 1", Cause.CRASH)
    first = ended(
        f"it takes its model from {root.cell_id}, which is failed (crash: exit code 1)",
        Cause.MISSING_DEPENDENCY,
        2,
        status=Status.SKIPPED,
    )
    second = ended(
        f"it takes its step from {first.cell_id}, which is skipped: {first.message}",
        Cause.MISSING_DEPENDENCY,
        3,
        status=Status.SKIPPED,
    )
    alone = ended("exit code 2", Cause.TIMEOUT, 4)
    found = endings([second, first, alone, root])
    assert [(ending.cause, len(ending.records), ending.followers) for ending in found] == [
        (Cause.CRASH, 1, 2),
        (Cause.TIMEOUT, 1, 0),
        (Cause.MISSING_DEPENDENCY, 2, 0),
    ]
