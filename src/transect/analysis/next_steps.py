"""What a person does now about a cell that did not end well: by its cause, and by what its message says.

One registry: `NEXT_STEPS` has an entry for every cause, `BY_MESSAGE` a nearer one where a message of ours,
of Slurm or of a launcher says more than its cause. The first pattern that is found counts.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from transect.domain.record import Cause

_RETRY = "transect retry results/{study} && make report STUDY={study}"
_RETRY_SKIPPED = "transect retry results/{study} --skipped && make report STUDY={study}"
_REPORT = "make report STUDY={study}"
_ONE = "transect run {study} {cell} --again"
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
        action="Install what the message names, or name modules or an image that bring it in the system file "
        "(`environments`, `benchmarks`); `transect doctor` says what this machine has. Then ask for these cells again.",
        command=_RETRY_SKIPPED,
    ),
    Cause.SCHEDULER: NextStep(
        meaning="The scheduler did not run the job, or took it back.",
        action="Compare the system file with what the cluster offers (`partition`, `account`, `qos`, "
        "`memory_mb_per_node`, `block_minutes`): `transect doctor --system FILE` does, with two short jobs. Then run "
        "again.",
        command=_RETRY,
    ),
    Cause.NODE_FAILURE: NextStep(
        meaning="A node was lost under the cell, which is none of the cell's doing.",
        action="Run again. If it is the same node twice, tell who runs the cluster, and keep away from it until then "
        "(`constraint` or `partition` in the system file).",
        command=_RETRY,
    ),
    Cause.OUT_OF_MEMORY: NextStep(
        meaning="It needed more memory than it may hold.",
        action="Give it more (`limits.memory_mb` in the study, `memory_mb_per_node` in the system file), or let it "
        "need less: a smaller batch, more ranks, or `memories: [recompute]`. With more room these cells run again by "
        "themselves.",
        command=_REPORT,
    ),
    Cause.TIMEOUT: NextStep(
        meaning="It ran longer than it may.",
        action="Raise `limits.seconds` in the study, or ask for less work (fewer epochs, a smaller model). With more "
        "time these cells run again by themselves. If others like it took seconds, it hangs: read the end of its log.",
        command=_REPORT,
    ),
    Cause.KILLED: NextStep(
        meaning="Something outside of it ended it: a person, a shutdown, or the kernel for want of memory.",
        action="Look into the system's log for `oom-kill` (`dmesg`); if it is there, set `limits.memory_mb` below what "
        "the machine has, or run fewer ranks. Otherwise run again.",
        command=_RETRY,
    ),
    Cause.CRASH: NextStep(
        meaning="It ended by itself, with an error.",
        action="Read the end of its log, below; run this one cell alone with the command. When code, environment or "
        "study are mended, it runs again by itself; when nothing was to mend, `transect retry` asks for it.",
        command=_ONE,
    ),
    Cause.WRONG_RESULT: NextStep(
        meaning="It ran, and what it computed is not right: its speed counts nowhere.",
        action="See how far it is off, and from which step on, under Equality of the trainers; compare library versions with a "
        "cell that is right, under Environment. When it is mended, run it again.",
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

_NO_PROGRAM = NextStep(
    meaning="A program that it starts is not on this machine.",
    action="Install it, or name modules or an image that bring it under `benchmarks` or `environments` in the "
    "system file. Then ask for these cells again.",
    command=_RETRY_SKIPPED,
)

# (cause, what its message holds, what to do then); None stands for any cause.
BY_MESSAGE: tuple[tuple[Cause | None, str, NextStep], ...] = (
    (
        Cause.MISSING_DEPENDENCY,
        r"\bit takes (?:its|a) .* from |it needs what job |takes from other cells cannot be read"
        r"|the record of its \S+ cannot be read",
        NextStep(
            meaning="It takes something from another cell, and that one did not deliver.",
            action="Mend the cell that the message names: it stands in this section too, or runs again by itself. Then "
            "ask for these.",
            command=_RETRY_SKIPPED,
        ),
    ),
    (
        Cause.MISSING_DEPENDENCY,
        r"\bimage \S+ (?:is|lacks|has|cannot)\b|\bimage of environment\b|\bcontainer\b",
        NextStep(
            meaning="The container image is not there, or lacks what the cell needs.",
            action="Make the image (`transect image ENVIRONMENT`), or name another one under `environments` in the "
            "system file. Then ask for these cells again.",
            command=_RETRY_SKIPPED,
        ),
    ),
    (Cause.MISSING_DEPENDENCY, r"\bis not on PATH\b", _NO_PROGRAM),
    (
        Cause.MISSING_DEPENDENCY,
        r"could not be (?:compiled|built|linked)|fatal error:|\bclang: error|\bnvcc\b",
        NextStep(
            meaning="Its program could not be compiled: the compiler, or a part of it, is not there.",
            action="Install what the message names (such as the compiler's support for GPUs), or take this "
            "implementation out of the study's grids. Then ask for these cells again.",
            command=_RETRY_SKIPPED,
        ),
    ),
    (
        Cause.MISSING_DEPENDENCY,
        r"hardware threads?|cores that this process may use",
        NextStep(
            meaning="It asks for something that this machine's processor does not have.",
            action="Run the study on a system that has it, or take the value that the message names out of its grids.",
            command="make report STUDY={study} SYSTEM=FILE",
        ),
    ),
    (
        Cause.MISSING_DEPENDENCY,
        r"\benvironment '[^']*'",
        NextStep(
            meaning="The software environment could not be made, or has gone.",
            action="Read why in results/environments, in the log with its name; mostly a compiler, a network or room "
            "is missing. `transect retry` forgets the failed attempt, and the next run makes it again.",
            command=_RETRY_SKIPPED,
        ),
    ),
    (
        Cause.MISSING_DEPENDENCY,
        r"\bGPUs?\b|\bCUDA\b|\bNVIDIA\b|libcu",
        NextStep(
            meaning="It needs a GPU, or its driver, and finds none.",
            action="Run the study on a system with one (`gpus_per_node` in the system file), or take `cuda` out of its "
            "grids.",
            command="make report STUDY={study} SYSTEM=FILE",
        ),
    ),
    (
        Cause.MISSING_DEPENDENCY,
        r"no such program|no (?:C |C\+\+ |Fortran )?compiler|No such file or directory",
        _NO_PROGRAM,
    ),
    (
        Cause.UNSUPPORTED,
        r"\bGPUs?\b|\bCUDA\b",
        NextStep(
            meaning="It needs a GPU, or a build that has one.",
            action="Nothing has to be mended. On a system with `gpus_per_node` above 0 it may run; else take `cuda` out "
            "of the study's grids.",
            command="make report STUDY={study} SYSTEM=FILE",
        ),
    ),
    (
        Cause.SCHEDULER,
        r"preempted|revoked",
        NextStep(
            meaning="The scheduler took its nodes away for another job.",
            action="Run again, or choose a `partition` or `qos` in the system file whose jobs are not preempted. What "
            "was finished is kept.",
            command=_RETRY,
        ),
    ),
    (
        Cause.SCHEDULER,
        r"[Ii]nvalid (?:account|partition|qos)|[Pp]ermission denied|not permitted",
        NextStep(
            meaning="The scheduler does not take jobs like these from you.",
            action="Set `account`, `partition` and `qos` in the system file to those that are yours: `sacctmgr show "
            "associations user=$USER` and `sinfo` list them.",
            command=_RETRY,
        ),
    ),
    (
        Cause.TIMEOUT,
        r"\bjob\b|DUE TO TIME LIMIT|its deadline",
        NextStep(
            meaning="The job's time ended before the cell did.",
            action="Raise `overhead_minutes` in the system file (start-up, slow file systems), or `limits.seconds` in "
            "the study if the cell itself needs longer. Then run again.",
            command=_RETRY,
        ),
    ),
    (
        Cause.OUT_OF_MEMORY,
        r"CUDA|GPU|cudaMalloc|HIP",
        NextStep(
            meaning="The GPU's memory was too small.",
            action="A smaller batch, more ranks, half precision or `memories: [recompute]` in the study's grids need "
            "less. A changed study runs by itself.",
            command=_REPORT,
        ),
    ),
    (
        Cause.CRASH,
        r"\bSIGILL\b|[Ii]llegal instruction",
        NextStep(
            meaning="A library was built for another processor.",
            action="Build the environment on this kind of node, or name modules of the machine in the system file "
            "(`environments`). Then run again.",
            command=_RETRY,
        ),
    ),
    (
        Cause.CRASH,
        r"\bSIG(?:SEGV|BUS|ABRT|FPE)\b|Segmentation fault|\bpanic:",
        NextStep(
            meaning="Its program broke: a fault of a library or of a plug-in, not of the study.",
            action="The end of its log, below, says where. Run this one cell alone; compare library versions with a "
            "cell that ran, under Environment.",
            command=_ONE,
        ),
    ),
    (
        Cause.CRASH,
        r"ended before its turn",
        NextStep(
            meaning="The job ended before this cell's turn came: it was never tried.",
            action="Mend what ended the cells before it in the same job, then run again.",
            command=_RETRY,
        ),
    ),
    (
        Cause.WRONG_RESULT,
        r"no valid number in its log",
        NextStep(
            meaning="The log holds no number that its benchmark vouches for.",
            action="The message quotes the benchmark's own check. Run the benchmark again, or leave this log out of "
            "`ingest.paths`; nothing of it is compared.",
            command="transect ingest PATH --summary",
        ),
    ),
)

_COMPILED = tuple((cause, re.compile(pattern), step) for cause, pattern, step in BY_MESSAGE)


def next_step(cause: Cause, message: str) -> NextStep:
    """Return what to do about a cell with this cause and message.

    >>> next_step(Cause.TIMEOUT, "ended after its limit of 180 s").command
    'make report STUDY={study}'
    """
    for of, pattern, step in _COMPILED:
        if of in (cause, None) and pattern.search(message):
            return step
    return NEXT_STEPS[cause]


def command_of(step: NextStep, *, study: str, cell: str) -> str:
    """Return the line to type for a study and one of its cells (`STAGE/ID`), safe to paste into a shell.

    >>> command_of(NEXT_STEPS[Cause.CRASH], study="quick", cell="train/a b~01234567")
    "transect run quick 'train/a b~01234567' --again"
    """
    whole = step.command.replace("results/{study}", "{folder}")
    return whole.format(folder=shlex.quote(f"results/{study}"), study=shlex.quote(study), cell=shlex.quote(cell))
