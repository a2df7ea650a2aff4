"""`transect doctor --system`: a good file passes, and each wrong promise is named with its cure."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from clusters import BOUND_S

# What the other files need runs meanwhile.
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("side_by_side")]

GOOD = """
name: good
scheduler: slurm
launcher: srun
mpi_launcher: srun
nodes: 4
cores_per_node: 2
gpus_per_node: 2
gpu_partition: gpu
gpu_type: fake
memory_mb_per_node: 4000
block_minutes: 50
account: transect
networks: {direct: {interface: eth0}}
scratch: /tmp
"""


@pytest.fixture(scope="module")
def checkout(make_checkout):
    return make_checkout()


def asked(checkout, text: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Return what the doctor says of a system file, with more arguments."""
    (checkout.folder / "system.yaml").write_text(text)
    command = [sys.executable, "-m", "transect", "doctor", "--system", "system.yaml", *more]
    return subprocess.run(
        checkout.cluster.shell(*command),
        cwd=checkout.folder,
        env=checkout.environment() | {"PYTHONPATH": str(checkout.folder / "src")},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        stdin=subprocess.DEVNULL,
    )


def doctor(checkout, text: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit code, and state and detail by row."""
    done = asked(checkout, text, "--json")
    assert done.stdout, done.stderr
    sections = json.loads(done.stdout)
    rows = [row for section in sections.values() for row in section]
    return done.returncode, {row["name"]: (row["state"], row["detail"]) for row in rows}


def test_a_file_that_fits_is_all_ok(checkout):
    code, rows = doctor(checkout, GOOD)
    bad = {name: row for name, row in rows.items() if row[0] == "wrong"}
    assert (code, bad) == (0, {})
    assert rows["MPI between nodes"][0] == "ok" and "2 ranks" in rows["MPI between nodes"][1]
    assert rows["results folder, written from there"][0] == "ok"
    assert rows["environment base"][0] == "ok"
    assert not list((checkout.folder / "results").glob(".doctor*"))


# What a file may promise wrongly, of every group, and what each row has to tell.
WRONG = {
    "block_minutes: 500": ("cpu: minutes", "block_minutes", "55 or less"),
    "nodes: 99": ("cpu: nodes", "99 asked", "12 or less"),
    "cores_per_node: 64": ("cpu: cores_per_node", "64 asked", "to 2"),
    "memory_mb_per_node: 9000": ("cpu: memory_mb_per_node", "9000 asked", "4000 or less"),
    "account: nobody": ("account nobody", "root, transect"),
    "gpu_type: h100": ("gpu: gpus_per_node", "gpu:fake:2"),
    "mpi_type: pmi9": ("mpi_type pmi9", "pmix"),
    "networks: {ib: {interface: ib0}}": ("network ib", "'ib0'"),
    "scratch: /nowhere": ("scratch", "/nowhere"),
    "environments: {runner-c: {modules: [gcc/99]}}": ("environment runner-c", "module: command not found"),
}


def test_wrong_promises_are_named_with_their_cures_in_one_round(checkout):
    """A partition and constraints: tests/unit/cli/test_doctor_system.py."""
    keys = {line.split(":")[0] for line in WRONG}
    kept = [line for line in GOOD.splitlines() if line.split(":")[0] not in keys]
    code, rows = doctor(checkout, "\n".join([*kept, *WRONG, ""]))
    assert code == 1
    for row, *facts in WRONG.values():
        assert rows[row][0] == "wrong", rows
        assert all(fact in rows[row][1] for fact in facts), rows[row]
