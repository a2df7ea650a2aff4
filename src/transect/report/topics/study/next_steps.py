"""What to do about a cell that did not end well, by its cause; shown with its message."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from transect.domain.record import Cause

_RESET = "transect reset results/{study} && make report STUDY={study}"
_RESET_SKIPPED = "transect reset results/{study} --skipped && make report STUDY={study}"
_REPORT = "make report STUDY={study}"
_ONE = "transect run {study} {cell} --force"
_CHECK = "transect check {study}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """What a cause means, what a person does or changes, and a line to type.

    `command` may hold `{study}` and `{cell}` (`STAGE/ID`): `command_of` puts quoted names there.
    """

    meaning: str
    action: str
    command: str


NEXT_STEPS: dict[Cause, NextStep] = {
    Cause.UNSUPPORTED: NextStep(
        meaning="What was asked for is offered by nobody in this combination: no fault.",
        action="Nothing has to be mended. To be rid of it, take the combination out of the study's grids; where the "
        "message names something that other machines have, run the study on a system that has it. The command lists "
        "what would be skipped, and why.",
        command=_CHECK,
    ),
    Cause.MISSING_DEPENDENCY: NextStep(
        meaning="A program, a library, an environment or another cell's result was not there.",
        action="Where the message names another cell, mend that one: it stands in this section too. Where it names a "
        "program, a library or an image, install or make it (`transect image ENVIRONMENT`), or name modules or an image "
        "that bring it in the system file (`environments`, `benchmarks`). Where it names an environment, "
        "results/environments has its log. What other processors or GPUs have, run on a system that has them. "
        "`transect doctor` says what this machine has. Then ask for these cells again.",
        command=_RESET_SKIPPED,
    ),
    Cause.SCHEDULER: NextStep(
        meaning="The scheduler did not run the job, or took its nodes away for another one.",
        action="Compare the system file with what the cluster offers (`partition`, `account`, `qos`, "
        "`memory_mb_per_node`, `block_minutes`): `transect doctor --system FILE` does, with two short jobs; `sacctmgr "
        "show associations user=$USER` lists what is yours. Then run again: what was finished is kept.",
        command=_RESET,
    ),
    Cause.NODE_FAILURE: NextStep(
        meaning="A node was lost under the cell, which is none of the cell's doing.",
        action="Run again. If it is the same node twice, tell who runs the cluster, and keep away from it until then "
        "(`constraint` or `partition` in the system file).",
        command=_RESET,
    ),
    Cause.OUT_OF_MEMORY: NextStep(
        meaning="It needed more memory than it may hold.",
        action="Give it more (`limits.memory_mb` in the study, `memory_mb_per_node` in the system file), or let it "
        "need less, as is all that helps on a GPU: a smaller batch, more ranks, half precision or `memories: "
        "[recompute]`. With more room these cells run again by themselves.",
        command=_REPORT,
    ),
    Cause.TIMEOUT: NextStep(
        meaning="It ran longer than it may.",
        action="Raise `limits.seconds` in the study, or ask for less work (fewer epochs, a smaller model). With more "
        "time these cells run again by themselves. Where its job's time ended first, raise `overhead_minutes` in the "
        "system file and ask by `transect reset`. If others like it took seconds, it hangs: read the end of its log.",
        command=_REPORT,
    ),
    Cause.KILLED: NextStep(
        meaning="Something outside of it ended it: a person, a shutdown, or the kernel for want of memory.",
        action="Look into the system's log for `oom-kill` (`dmesg`); if it is there, set `limits.memory_mb` below what "
        "the machine has, or run fewer ranks. Otherwise run again.",
        command=_RESET,
    ),
    Cause.CRASH: NextStep(
        meaning="It ended by itself, with an error.",
        action="Read the end of its log, below; run this one cell alone with the command. A signal (SIGSEGV, SIGILL) is a "
        "fault of a library: compare versions with a cell that ran, under Environment, or build the environment on this "
        "kind of node. When code, environment or study are mended, it runs again by itself; when nothing was to mend, or "
        "it was never tried, `transect retry` runs it again.",
        command=_ONE,
    ),
    Cause.WRONG_RESULT: NextStep(
        meaning="It ran, and what it computed is not right: its speed counts nowhere.",
        action="See how far it is off, and from which step on, under Equality of the trainers; compare library versions with a "
        "cell that is right, under Environment. When it is mended, run it again. Of a log the message quotes the "
        "benchmark's own check: run that again, or leave the log out of `ingest.paths`.",
        command=_ONE,
    ),
    Cause.DIVERGED: NextStep(
        meaning="Its loss grew without end, or is no number any more.",
        action="Lower the learning rate, or let it grow at first (`workloads.NAME.learning_rate`, `warmup_steps` in the "
        "study); a float64 reference that ends there too says that the setting is at fault, not the framework. A "
        "changed setting runs by itself.",
        command=_REPORT,
    ),
    Cause.BAD_INPUT: NextStep(
        meaning="A file or a setting cannot be used; the message says what was given and what was expected.",
        action="Mend what the message names. A changed study or file runs by itself; the command checks the study "
        "first.",
        command=_CHECK,
    ),
}


def command_of(step: NextStep, *, study: str, cell: str) -> str:
    """Return the line to type for a study and one of its cells (`STAGE/ID`), safe to paste into a shell.

    >>> command_of(NEXT_STEPS[Cause.CRASH], study="quick", cell="train/a b~01234567")
    "transect run quick 'train/a b~01234567' --force"
    """
    whole = step.command.replace("results/{study}", "{folder}")
    return whole.format(folder=shlex.quote(f"results/{study}"), study=shlex.quote(study), cell=shlex.quote(cell))
