"""The shim on every rank: its numbers, its cores and GPUs, labels, services, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.launch import rank
from transect.launch.rank import Numbers, fill, find_numbers

pytestmark = pytest.mark.env

SHIM = [sys.executable, rank.__file__]


def numbers_of(environ: dict[str, str], *args: object) -> tuple[int, ...]:
    return tuple(find_numbers(environ, *args))[:6]


@pytest.mark.parametrize(
    ("numbered_by", "environ"),
    [
        ("slurm", {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}),
        ("mpi", {f"OMPI_COMM_WORLD_{k}": v for k, v in (("RANK", "5"), ("SIZE", "8"), ("LOCAL_RANK", "1"))}),
        ("mpi", {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}),
        ("given", {"RANK": "5", "WORLD_SIZE": "8"}),
        # A batch script's own SLURM_PROCID is 0; mpiexec's number counts.
        ("auto", {"PMI_RANK": "5", "PMI_SIZE": "8", "SLURM_PROCID": "0"}),
    ],
)
def test_numbers_are_found(numbered_by, environ):
    assert numbers_of(environ, numbered_by, (4,)) == (5, 8, 1, 4, 1, 2)


def test_nodes_may_have_unequal_numbers_of_ranks():
    numbers = [find_numbers({"PMI_RANK": str(rank), "PMI_SIZE": "3"}, "mpi", (2, 1)) for rank in range(3)]
    assert [(n.node, n.local_rank, n.local_size) for n in numbers] == [(0, 0, 2), (0, 1, 2), (1, 0, 1)]
    # Horovod's "cross": local rank 1 has nobody of its kind on the second node.
    assert [(n.cross_rank, n.cross_size) for n in numbers] == [(0, 2), (0, 1), (1, 2)]
    cyclic = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0"}
    for environ, numbered_by, each, message in (
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, "mpi", (2, 1), "expected one of 3 ranks"),
        ({}, "auto", (), r"one of .*SLURM_PROCID"),
        (cyclic, "slurm", (2,), "node by node"),
    ):
        with pytest.raises(ValueError, match=message):
            find_numbers(environ, numbered_by, each)


@given(rank=st.integers(0, 10**6), text=st.text(alphabet='{}rank"0 ', max_size=30))
def test_fill_leaves_other_braces(rank, text):
    numbers = Numbers(rank, 1, 0, 1, 0, 1, "h")
    assert fill(text, numbers) == text.replace("{rank}", str(rank))


def shim(*options: str, command: list[str], rank: int = 1, **environ: str) -> subprocess.CompletedProcess[str]:
    variables = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    return subprocess.run(
        [*SHIM, "--numbered-by", "given", "--ranks-per-node", "2", *options, "--", *command],
        env=os.environ | variables | environ,
        capture_output=True,
        text=True,
        timeout=600,
    )


SHOW = [sys.executable, "-c", "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"]


def test_shim_becomes_the_command():
    done = shim("--set", "X={rank}/{size}={json}", command=["sh", "-c", "echo $X; kill -9 $$"])
    assert done.stdout == "1/2={json}\n"
    assert done.returncode == -signal.SIGKILL


def test_shim_deals_gpus():
    for number, expected in enumerate(("GPU-a,3", "5,7")):
        done = shim("--gpus-per-rank", "2", command=SHOW, rank=number, CUDA_VISIBLE_DEVICES="GPU-a,3,5,7")
        assert done.stdout.strip() == expected
    shared = shim("--gpus-per-rank", "1", "--share-gpus", command=SHOW, CUDA_VISIBLE_DEVICES="4,6")
    assert shared.stdout.strip() == "4,6"
    # The launcher dealt them.
    numbers = {f"OMPI_COMM_WORLD_{k}": v for k, v in (("RANK", "1"), ("SIZE", "2"), ("LOCAL_RANK", "1"))}
    by_mpi = ("--numbered-by", "mpi")
    dealt = shim("--gpus-per-rank", "1", *by_mpi, command=SHOW, CUDA_VISIBLE_DEVICES="6", **numbers)
    assert dealt.stdout.strip() == "6"
    none = shim("--gpus-per-rank", "1", command=SHOW, CUDA_VISIBLE_DEVICES="")
    assert none.returncode == 2 and "2 GPUs" in none.stderr


def test_plain_ranks_do_not_share_the_only_gpu():
    # Two processes that nobody has dealt GPUs to: NCCL then says "Duplicate GPU detected".
    plain = shim("--gpus-per-rank", "1", command=SHOW, CUDA_VISIBLE_DEVICES="6")
    assert plain.returncode == 2 and "2 ranks need 2 GPUs, this node shows 6" in plain.stderr


CORES = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_shim_binds_unless_told_not_to():
    masks = [json.loads(shim("--bind", "always", command=CORES, rank=r).stdout) for r in (0, 1)]
    assert masks[0] and masks[1] and not set(masks[0]) & set(masks[1])
    free = shim("--bind", "always", command=CORES, TRANSECT_BIND="none")
    assert json.loads(free.stdout) == sorted(os.sched_getaffinity(0))


def test_labels_are_binary_safe_and_end_lines():
    code = "import sys; sys.stdout.buffer.write(b'a\\n\\xff\\n\\nlast'); sys.stderr.write('e\\n')"
    argv = [*SHIM, "--numbered-by", "given", "--label", "--", sys.executable, "-c", code]
    done = subprocess.run(argv, env=os.environ | {"RANK": "7"}, capture_output=True, timeout=600)
    assert done.stdout == b"[7] a\n[7] \xff\n[7] \n[7] last\n"
    assert done.stderr == b"[7] e\n"


def test_long_output_arrives_whole():
    code = "for i in range(20000): print(i, 'x' * (i % 50))\nprint('y' * 70000)"
    done = shim("--label", command=[sys.executable, "-c", code])
    lines = done.stdout.splitlines()
    assert all(line.startswith("[1] ") for line in lines)
    texts = [line[4:] for line in lines]
    assert texts[:20000] == [f"{i} {'x' * (i % 50)}" for i in range(20000)]
    # A line longer than 64 KiB comes in pieces.
    assert "".join(texts[20000:]) == "y" * 70000


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [("exit 5", 5, "rank 1 on .* code 5"), ("kill -9 $$", 137, r"signal 9 \(SIGKILL\)"), ("exit 0", 0, "^$")],
)
def test_parent_tells_the_end(script, code, message):
    done = shim("--label", command=["sh", "-c", script])
    assert done.returncode == code
    assert re.search(message, done.stderr)


def test_program_that_is_not_there():
    for options in ([], ["--label"]):
        done = shim(*options, command=["no-such-program"])
        assert done.returncode == 127
        assert done.stderr.startswith("[1] ") and "'no-such-program'" in done.stderr


def service(**fields: object) -> str:
    defaults = {"name": "s", "on": "every-node", "argv": None, "variables": {}, "wait_for": "", "ends": False}
    return json.dumps(defaults | fields)


def test_service_runs_beside_rank_0_and_ends_with_it(tmp_path):
    forever = service(variables={"ROLE": "service"})
    # The rank ends when the service has spoken, however late that is.
    script = f"""if [ "$ROLE" ]; then echo $ROLE; touch {tmp_path}/spoken; exec sleep 1000; fi
        until [ -e {tmp_path}/spoken ]; do sleep 0.05; done; echo rank"""
    done = shim("--label", "--service", forever, command=["sh", "-c", script], rank=0)
    assert sorted(done.stdout.splitlines()) == ["[0] rank", "[s 0] service"]
    assert done.returncode == 0
    alone = shim("--label", "--service", forever, command=["sh", "-c", script], rank=1)
    assert alone.stdout == "[1] rank\n"


def test_a_service_is_told_of_no_turns_and_its_rank_is(monkeypatch):
    monkeypatch.setenv("TRANSECT_TURNS", "127.0.0.1:1:k")
    script = "echo ${ROLE:-rank} ${TRANSECT_TURNS:-none}"
    ends = service(variables={"ROLE": "server"}, ends=True)
    done = shim("--label", "--service", ends, command=["sh", "-c", script], rank=0)
    assert sorted(done.stdout.splitlines()) == ["[0] rank 127.0.0.1:1:k", "[s 0] server none"]


def test_failing_service_ends_its_rank():
    script = 'if [ "$ROLE" ]; then exit 6; fi; exec sleep 1000'
    failing = service(variables={"ROLE": "x"}, ends=True)
    done = shim("--service", failing, command=["sh", "-c", script], rank=0)
    assert done.returncode == 6
    assert "s 0 on" in done.stderr and "code 6" in done.stderr
