"""What the present Slurm job is: its nodes, their cores, its steps."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from transect.domain.errors import BadInput, MissingDependency
from transect.domain.terminal import say

_RANGE = re.compile(r"\[([\d,-]+)\]")


def _numbers(text: str) -> list[str]:
    ends = [part.partition("-")[::2] for part in text.split(",")]
    return [str(n).zfill(len(first)) for first, last in ends for n in range(int(first), int(last or first) + 1)]


def _expand(part: str) -> list[str]:
    match = _RANGE.search(part)
    if match is None:
        return [part]
    before, after = part[: match.start()], part[match.end() :]
    return [before + n + ending for n in _numbers(match[1]) for ending in _expand(after)]


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a Slurm node list: `n[1-2,07],login` is n1 n2 n07 login. Raises BadInput for no such list."""
    try:
        hosts = [host for part in re.split(r",(?![^\[]*\])", text.strip()) for host in _expand(part)]
    except ValueError:
        hosts = []
    if not hosts or any(not host or "[" in host for host in hosts):
        raise BadInput(f"{text!r} is no list of nodes, expected such as n[1-4,7]")
    return hosts


# What Slurm's programs say when the controller is restarted, or too busy to answer in time.
_PASSING = re.compile(
    r"timed out|Unable to contact|Connection refused|connection failure|Zero Bytes"
    r"|(?:receive|send) failure|reset by peer|Transport endpoint|temporarily|backup controller|Unexpected message",
    re.IGNORECASE,
)
_ANSWER_S = 120
# A longer wait prints its reason.
_IN_SILENCE_S = 10


def ask(*argv: str, patience_s: float = 300) -> str:
    """Return what a Slurm program prints; ask again while the controller cannot answer now.

    Raises MissingDependency when it fails for another reason, or goes on to after `patience_s`.
    """
    begin, announced = time.monotonic(), False
    while True:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_ANSWER_S)
        except OSError as error:
            raise MissingDependency(f"{argv[0]}: {error}") from None
        except subprocess.TimeoutExpired as error:
            problem, passes = f"{argv[0]}: {error}", True
        else:
            if not done.returncode:
                return done.stdout.strip()
            output = done.stderr or done.stdout
            last = (output.strip().splitlines() or ["nothing"])[-1]
            problem = f"{' '.join(argv)}: exit code {done.returncode}: {last}"
            passes = _PASSING.search(output) is not None
        waited = time.monotonic() - begin
        if not passes or waited >= patience_s:
            raise MissingDependency(problem)
        if waited >= _IN_SILENCE_S and not announced:
            say(f"[transect] {problem}: asked again for {patience_s:g} s at most")
            announced = True
        time.sleep(1)


def job_id(environ: Mapping[str, str] = os.environ) -> str:
    """Return the job's number. Raises BadInput outside of an allocation."""
    if "SLURM_JOB_ID" not in environ:
        raise BadInput("srun needs a Slurm allocation: SLURM_JOB_ID is not set")
    return environ["SLURM_JOB_ID"]


def job_hosts(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the nodes of the allocation, in Slurm's order.

    Snakemake strips most SLURM_ variables from its jobs, so squeue is asked when they are not there.
    Raises MissingDependency when squeue does not answer.
    """
    job = job_id(environ)
    listed = environ.get("SLURM_JOB_NODELIST") or ask("squeue", "-h", "-j", job, "-o", "%N")
    return expand_hosts(listed)


def each_node(text: str) -> list[int]:
    """Return the number of each node: `2(x3),1` is 2 2 2 1."""
    parts = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(count) for count, times in parts for _ in range(int(times or 1))]


def cores_per_node(environ: Mapping[str, str] = os.environ, ranks: Sequence[int] | None = None) -> int:
    """Return the least number of CPUs that the job has on one of its nodes.

    `ranks` on each node: the CPUs that the node with the most of them has, were all ranks to have as
    many as those that have the least; jobs of 3 tasks on 2 nodes have 2 and 1.
    Raises MissingDependency when squeue, asked where variables are stripped, does not answer.
    """
    cpus = each_node(environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if ranks and len(cpus) >= len(ranks):
        share = min(count // n_ranks for count, n_ranks in zip(cpus, ranks, strict=False))
        if share:
            return share * max(ranks)
    if cpus:
        return min(cpus)
    nodes, _, total = ask("squeue", "-h", "-j", job_id(environ), "-o", "%D %C").partition(" ")
    return max(1, int(total) // max(1, int(nodes)))


# What srun takes from its environment as options. An outer step (`srun -l`, `srun --pty bash`) leaves
# its own there, and so do a job's: labels before each line, no output at all, the cores of a rank
# for all ranks of ours; --ntasks-per-gpu is refused beside --ntasks-per-node.
_STEP_OPTIONS = ("LABELIO", "STDOUTMODE", "STDERRMODE", "MULTI_PROG", "NTASKS_PER_GPU")
_OUTER_STEP_OPTIONS = ("CPU_BIND", "MEM_BIND", "GPU_BIND")
# Where the step asks for GPUs itself, and rank.py deals them out.
_GPU_OPTIONS = ("GPUS", "GPUS_PER_NODE", "GPUS_PER_SOCKET", "GPUS_PER_TASK", "TRES_PER_TASK", "GPU_BIND")


def srun(*, gpus: bool = False, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return how to call srun so that its arguments alone say what the step is.

    Options that it would take from the environment are unset. `gpus`: the arguments ask for GPUs.
    Slurm's manual of srun, INPUT ENVIRONMENT VARIABLES.
    """
    options = [*_STEP_OPTIONS, *(_GPU_OPTIONS if gpus else ())]
    if "SLURM_STEP_ID" in environ:
        options += _OUTER_STEP_OPTIONS
    names = dict.fromkeys(f"SLURM_{option}" for option in options)
    unset = [f"--unset={name}" for name in names if name in environ]
    return ["env", *unset, "srun"] if unset else ["srun"]


def is_local(host: str) -> bool:
    """Tell whether `host` is a name of this machine, or of one of its interfaces."""
    if host.split(".")[0] == socket.gethostname().split(".")[0]:
        return True
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind((socket.gethostbyname(host), 0))
        return True
    return False


def signal_step(name: str, number: int) -> bool:
    """Send a signal to all ranks of the job's step `name`; return whether that was done.

    It is done for SIGINT, SIGTERM and SIGHUP, which srun itself answers with SIGKILL to its ranks,
    so that they have no time to save. Other signals are left to srun, which passes them on.
    """
    if number not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        return False
    try:
        lines = ask("squeue", "-h", "-s", "-j", job_id(), "-o", "%i %j").splitlines()
        steps = [step for step, _, label in (line.strip().partition(" ") for line in lines) if label == name]
        for step in steps:
            # Its exit code says nothing: Slurm 22.05 delivers the signal and reports an invalid job id.
            argv = ["scancel", f"--signal={signal.Signals(number).name[3:]}", step]
            subprocess.run(argv, capture_output=True, timeout=_ANSWER_S)
    except (MissingDependency, BadInput, OSError, subprocess.TimeoutExpired):
        return False
    return bool(steps)
