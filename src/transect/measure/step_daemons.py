"""Whether the daemon of a job step, `slurmstepd`, has died on this node.

Slurm does not notice: srun waits on, for ranks that nobody will report the end of.
"""

from __future__ import annotations

import contextlib
import subprocess

import psutil

_ANSWER_S = 60


def daemon_died(step: str) -> bool:
    """Tell whether this node had a daemon of the step `JOB.NUMBER` which was killed; end the ranks that it left.

    One that ended by itself removes its socket; that of a killed one stays and takes no connection.
    False where scontrol cannot be asked. Seen with Slurm 22.05; src/scontrol and stepd_api.c of 21.08 to 24.11.
    """
    argv = ["scontrol", "listpids", step]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    died = "slurmstepd: Connection refused" in done.stderr + done.stdout
    if died:
        _end_orphans(step)
    return died


def _end_orphans(step: str) -> None:
    job, _, number = step.partition(".")
    marks = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": number}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if marks.items() <= process.environ().items():
                process.kill()
