"""Disks and networks that somebody else uses: each is provoked, seen and told in words."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transect.measure.guard import disturbances, snapshot
from transect.measure.pressure import WAITING, Counters, between, canary, mount_bytes, pressed, slower

NODE = {"host": "n1"}
MOUNTS = """\
device proc mounted on /proc with fstype proc
device server:/home mounted on /home with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	bytes:	11 22 33 44 1000 200 5 6
device server:/scratch mounted on /scratch with fstype nfs statvers=1.1
	bytes:	0 0 0 0 7 0 0 0
device /dev/vda mounted on / with fstype ext4
"""
WRITER = """
import os, sys
with open(sys.argv[1], "wb") as file:
    while True:
        file.seek(0)
        file.write(bytes(64 << 20))
        os.fsync(file.fileno())
"""
# In a network of its own, whose one link leads nowhere else.
SENDER = """
import json, socket, subprocess, sys, threading
for command in (
    "ip link add here type veth peer name there",
    "ip address add 10.9.9.1/24 dev here",
    "ip link set here up",
    "ip link set there up",
    "ip neighbour add 10.9.9.2 lladdr 02:00:00:00:00:01 dev here",
):
    if subprocess.run(command.split()).returncode:
        sys.exit(77)
from transect.measure.guard import disturbances, snapshot
from transect.measure.pressure import _limit
done = threading.Event()
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        while not done.is_set():
            out.sendto(bytes(60000), ("10.9.9.2", 9))
sender = threading.Thread(target=send)
sender.start()
seen = []
for _ in range(200):
    looked = snapshot()
    seen = [said for said in disturbances([looked], [looked]) if " over here of " in said]
    if seen:
        break
done.set()
sender.join()
print(json.dumps({"said": seen, "limit": _limit("here")}))
"""


@pytest.mark.env
def test_a_disk_that_somebody_waits_for_is_seen(tmp_path: Path) -> None:
    if not Path("/proc/pressure/io").is_file():
        pytest.skip("this kernel does not tell who waits for disks")
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True
    ).stdout.strip()
    if kind in ("tmpfs", "overlayfs"):
        pytest.skip(f"nobody waits for a disk in a folder of {kind}")
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "written"]) as writer:
        try:
            limit = time.monotonic() + 600
            while (looked := snapshot())["disk_waiting"] < WAITING:
                assert time.monotonic() < limit, "never seen"
        finally:
            writer.kill()
    assert any("waited for a disk" in said for said in disturbances([looked], [looked]))


@pytest.mark.env
def test_traffic_of_an_interface_is_seen() -> None:
    made = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", SENDER]
    done = subprocess.run(made, capture_output=True, text=True, timeout=600)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no network of its own here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["said"], told


@pytest.mark.parametrize(("waiting", "told"), [(WAITING, True), (WAITING - 0.01, False), (None, False)])
def test_what_is_told_of_a_disk(waiting: float | None, told: bool) -> None:
    assert bool(list(pressed(NODE | {"disk_waiting": waiting}, "before"))) is told


def test_a_look_is_what_happened_in_it() -> None:
    first = Counters(at=1.0, stalled_s=5.0, moved={"ib0": 1000, "idle": 7})
    last = Counters(at=1.5, stalled_s=5.25, moved={"ib0": 51_000, "idle": 7, "new": 9})
    assert between(first, last) == {"disk_waiting": 0.5, "bytes_per_s": {"ib0": 100_000}}
    unknown = Counters(at=2.0, stalled_s=None, moved={})
    assert between(first, unknown) == {"disk_waiting": None, "bytes_per_s": {}}


def test_mounts_of_a_network_are_counted_and_local_ones_not() -> None:
    assert dict(mount_bytes(MOUNTS)) == {"/home": 1200, "/scratch": 7}


def test_an_interface_counts_from_a_tenth_of_its_speed() -> None:
    look = NODE | {"bytes_per_s": {"ib0": 99, "eth0": 100}, "loaded_from": {"ib0": 100, "eth0": 100}}
    (said,) = pressed(look, "after")
    assert "over eth0 of n1 after it" in said


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(0.01, 0.5, True), (0.01, 0.05, False), (0.2, 0.5, False), (None, 0.5, False), (0.01, None, False)],
)
def test_a_small_write_that_got_slow_is_told(before: float | None, after: float | None, told: bool) -> None:
    assert bool(list(slower(NODE | {"canary_s": before}, NODE | {"canary_s": after}))) is told


def test_the_canary_leaves_nothing_and_ends_nothing(tmp_path: Path) -> None:
    taken = canary(tmp_path)
    assert taken is not None and taken > 0
    assert list(tmp_path.iterdir()) == []
    assert canary(tmp_path / "absent") is None
