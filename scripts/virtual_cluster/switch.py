"""Drives the software switch (switch.c), which carries all links but the control link."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import ClusterError
from .options import Link
from .processes import DAEMON_ENVIRONMENT, Process, wait_until
from .state import Folder

SOURCE = Path(__file__).with_name("switch.c")


def _program(folder: Folder) -> Path:
    return folder.path / "switch"


def _build(folder: Folder) -> None:
    """Compile the switch into the state folder, unless it is there."""
    target = _program(folder)
    if target.exists():
        return
    done = subprocess.run(["cc", "-O2", "-o", str(target), str(SOURCE)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"cc cannot compile {SOURCE}: {done.stderr.strip()}")


def _process_file(folder: Folder, link: Link) -> Path:
    return folder.run / f"switch-{link.name}.json"


def _shape_file(folder: Folder, link: Link) -> Path:
    return folder.run / f"switch-{link.name}.shape"


def running(folder: Folder, link: Link) -> bool:
    """Whether this link's switch runs; to be asked outside of the world."""
    process = Process.load(_process_file(folder, link))
    return process is not None and process.alive()


def _write_shape(folder: Folder, link: Link) -> None:
    shape = f"{link.rate_bit_per_s} {round(link.delay_us * 1000)}\n"
    _shape_file(folder, link).write_text(shape)


def _record(folder: Folder, link: Link) -> None:
    Process.myself(folder.host_proc).save(_process_file(folder, link))


def start(folder: Folder, link: Link, namespaces: Sequence[Path]) -> None:
    """Start the switch, which makes the link's interfaces in these network namespaces."""
    _build(folder)
    _write_shape(folder, link)
    log = folder.log / f"switch-{link.name}.log"
    log.unlink(missing_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(_program(folder)), str(_shape_file(folder, link)), link.name, *map(str, namespaces)],
            env=DAEMON_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: _record(folder, link),
        )
    ready = wait_until(lambda: "ready" in log.read_text() or process.poll() is not None, 300)
    if not ready or process.poll() is not None:
        raise ClusterError(f"link {link.name}: the software switch failed: {log.read_text().strip()}")


def _pid_inside(folder: Folder, link: Link) -> int:
    """Return the switch's number in the world, where its own /proc is mounted."""
    own = [str(_program(folder)), str(_shape_file(folder, link)), link.name]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if argv[:3] == own:
                return int(entry.name)
    raise ClusterError(f"link {link.name}: its software switch does not run")


def reshape(folder: Folder, link: Link) -> None:
    """Tell the switch another rate and delay; what is connected stays connected."""
    _write_shape(folder, link)
    os.kill(_pid_inside(folder, link), signal.SIGHUP)
