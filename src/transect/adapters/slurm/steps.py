"""What srun says of a job step: that it never began, that it passes, or why it ended.

Slurm's words decide, never a clock: a controller, or a node's daemon, that is busy with the disk
answers late, and srun then gives up a step that nobody cancelled.
Messages: src/srun/libsrun/{allocate,launch,step_ctx}.c and slurm_errno.c of Slurm 21.08 to 24.11.
"""

from __future__ import annotations

import re

from transect.domain.record import Cause
from transect.engine.scheduler import Refusal

# Daemons may sign with their node: `slurmstepd-n1: `.
_STEP_LINE = re.compile(r"^(?:srun|slurmstepd|slurmd)(?:-[\w.-]+)?: ")
_NO_STEP = re.compile(r"^srun: error: Unable to (?:create step for|confirm allocation for) job \d+: (.+)")
# A task that cannot be launched on one node makes srun cancel those that began on the others.
_NO_LAUNCH = re.compile(r"^srun: error: Task launch for (?:StepId=)?(\S+) failed on node \S+: (.+)")
# The job ended though we live: its node's daemon had died.
_EXPIRED = re.compile(r"^srun: (?:error: )?Slurm job \d+ has expired")
_NODE_FAILED = re.compile(r"^srun: error: Node failure on ")
_LATE = re.compile(r"^srun: error: timeout waiting for task launch")
# Whatever else Slurm says when it takes no step may pass: nodes that clean up, a controller that
# restarts, a node that is down until the job ends for it. These are about the request itself.
_LASTING = re.compile(
    r"configuration is not available|More processors requested|Memory required by task"
    r"|^Invalid (?!job id|job cred)|Access/permission denied|count specification invalid",
    re.IGNORECASE,
)
# Of a launch only these pass: it may as well fail for what the node lacks.
_LAUNCHED_LATE = re.compile(
    r"credential expired|timed out|connection failure|Connection refused|Unable to contact"
    r"|Prolog (?:still|hung)|Zero Bytes|temporarily unavailable|Transport endpoint"
    r"|Communication shutdown|Message receive failure|Message send failure",
    re.IGNORECASE,
)
# First come first: later lines tell of ranks that srun ended.
_ENDS = (
    (Cause.OUT_OF_MEMORY, r"exceeded (?:job |step )?memory limit|oom[-_ ]kill|Out Of Memory"),
    (Cause.NODE_FAILURE, r"DUE TO NODE FAILURE|Node failure on"),
    (Cause.TIMEOUT, r"DUE TO TIME LIMIT"),
    (Cause.SCHEDULER, r"Task launch for \S+ failed on node|timeout waiting for task launch"),
    (Cause.KILLED, r"tasks? [\d,-]+: (?:Killed|Terminated)\b|STEP \S+ (?:ON \S+ )?CANCELLED AT"),
    (None, r"tasks? [\d,-]+: (?:Exited with exit code|Segmentation|Aborted|Bus error|Floating)"),
)


ENERGY_FIELDS = "JobID,JobName,State,ConsumedEnergyRaw"
# Slurm's "no value", 32 and 64 bits wide, and what it prints of nodes that tell nothing.
_NO_VALUES = (0, 0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


def refusal(log: str) -> Refusal | None:
    """Return why srun's step did not begin, from what it printed; None when it began."""
    for line in log.splitlines():
        if match := _NO_STEP.match(line):
            return Refusal(line=line, passes=_LASTING.search(match[1]) is None)
        if match := _NO_LAUNCH.match(line):
            passes = _LAUNCHED_LATE.search(match[2]) is not None
            return Refusal(line=line, passes=passes, step=match[1])
        if _EXPIRED.match(line):
            return Refusal(line=line, passes=True)
        if _LATE.match(line):
            return Refusal(line=line, passes=False)
        if _NODE_FAILED.match(line):
            continue  # also printed before a launch that fails for it
        if _STEP_LINE.match(line) and any(re.search(sign, line) for _, sign in _ENDS):
            return None
    return None


def step_cause(log: str) -> tuple[Cause | None, str] | None:
    """Return the cause that the first line of srun with one names, and that line; None where no line does.

    The cause is None when a rank ended by itself first: its own files say more.
    """
    for line in log.splitlines():
        if not _STEP_LINE.match(line):
            continue
        for cause, pattern in _ENDS:
            if re.search(pattern, line):
                return cause, line.strip()
    return None


def energy(text: str, name: str) -> tuple[float | str, bool]:
    """Return the energy in J that sacct's table has of the last step of that name, and whether it will say no more."""
    rows = [line.split("|") for line in text.splitlines()]
    matching = [row for row in rows if len(row) == 4 and row[1] == name]
    if not matching:
        return f"sacct knows no step {name}", False
    step, _, state, raw = matching[-1]
    if not state.startswith("COMPLETED") or not raw.strip():
        return f"sacct calls the step {step} {state}, and its energy '{raw}'", False
    if not raw.strip().isdecimal() or int(raw) in _NO_VALUES:
        return f"sacct reports '{raw.strip()}' as the energy of the step {step}", True
    return float(raw), True
