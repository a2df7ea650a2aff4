"""Jobs that died before their program printed anything: each launch is told, and no file's name is a program."""

from __future__ import annotations

import io
import re

import pytest
from log_scan import scan, scanner_of
from whole_logs import LOGS as WHOLE

IOR = "mpirun -n 4 ./ior -w\n"
DIED = "{}: error while loading shared libraries: libmpi.so.40\n"


def launches(text: str) -> list[tuple[str, str, int]]:
    return [(run.benchmark, str(run.status), run.line) for run in scan(text)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_of_several_launches_that_died_is_told(end: str) -> None:
    text = IOR + DIED.format("ior") + "mpirun -n 4 ./xhpl\n" + DIED.format("xhpl")
    text += "srun ./osu_bw\nosu_bw: Permission denied"
    found = launches(text.replace("\n", end))
    assert found == [("ior", "failed", 1), ("hpl", "failed", 3), ("osu", "failed", 5)]


def test_what_died_before_another_benchmarks_results_is_told() -> None:
    from storage_logs import LOGS

    name = next(key for key in LOGS if key.startswith("io500"))
    whole = [(run.benchmark, str(run.status)) for run in scan(LOGS[name])]
    runs = scan("mpirun ./xhpl\n" + DIED.format("xhpl") + LOGS[name])
    assert [(run.benchmark, str(run.status)) for run in runs] == [("hpl", "failed"), *whole]
    assert "libmpi.so.40" in runs[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "+ " + IOR + IOR + "ior: killed by signal 9\n",
        IOR + "ior: killed by signal 9\nCommand: " + IOR + "exceeded its time\n",
        "0: " + IOR + "0: killed\n1: " + IOR + "1: killed too\n",
    ],
)
def test_one_launch_that_is_said_twice_is_one(text: str) -> None:
    assert launches(text) == [("ior", "failed", 1)]


@pytest.mark.parametrize("line", ["srun ls /data/ior", "srun -n 1 /bin/cat results/hpcg"])
def test_a_file_named_like_a_program_is_no_launch(line: str) -> None:
    assert launches(f"{line}\nfatal: gone\n") == [("unknown", "no-result", 0)]
    assert launches(line.replace("ls", "numactl -l").replace("/bin/cat", "env") + "\nfatal: gone\n")[0][1] == "failed"


def test_a_launch_behind_another_benchmarks_output_is_told() -> None:
    from storage_logs import LOGS

    alone = scan(LOGS["mdtest 3.3.0"][:-200])
    runs = scan(LOGS["mdtest 3.3.0"][:-200] + "\n+ srun ./osu_bw -m 8\nosu_bw: Permission denied\n")
    assert [(run.benchmark, run.metrics) for run in runs[:-1]] == [(run.benchmark, run.metrics) for run in alone]
    assert (runs[-1].benchmark, runs[-1].status) == ("osu", "failed")
    assert "Permission denied" in runs[-1].reason
    # What IO500 starts inside of itself is its own.
    name = next(key for key in LOGS if key.startswith("io500"))
    lines = LOGS[name].split("\n")
    within = "\n".join([*lines[:4], "+ mpirun ./ior -w", *lines[4:]])
    assert {run.benchmark for run in scan(within)} == {"io500"}


@pytest.mark.parametrize(
    "line",
    [
        "srun --job-name hpl ./train.py",
        "srun -J osu_bw -n 2 ./train.py",
        "mpirun --output=/logs/ior ./train.py",
        "srun --chdir /data/hpcg ./train.py",
    ],
)
def test_a_program_as_an_options_value_is_no_launch(line: str) -> None:
    assert launches(f"{line}\nfatal: gone\n") == [("unknown", "no-result", 0)]
    started = line.replace("./train.py", "--oversubscribe ./xhpl")
    assert launches(f"{started}\nfatal: gone\n")[0][:2] == ("hpl", "failed")


SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\nmodule load mpi\nsrun ./xhpl\n"


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        SCRIPT + 'grep PASSED hpl.out || echo "error: it failed"\n',
        "#PBS -l nodes=2\nmpirun ./xhpl\n",
        "# How to\n\n```bash\nmpirun -np 4 ./xhpl\n```\n\nIf it cannot be found, build it.\n",
        "apiVersion: v1\nspec:\n  command: |\n    mpirun -np 16 /opt/all_reduce_perf -b 8\n",
        "mpirun -np $SLURM_NTASKS ./xhpl\n",
        "mpirun -np 4 ./xhpl > hpl.out\n",
        "mpirun -np 4 \\\n    --bind-to none \\\n    ./xhpl\nmpirun ./xhpl \\\n",
        "srun ./xhpl || exit 1\n",
    ],
)
def test_what_a_script_or_a_page_says_was_not_started(text: str) -> None:
    assert launches(text) == [("unknown", "no-result", 0)]


def test_a_script_that_a_log_repeats_hides_no_failure() -> None:
    assert launches(SCRIPT + "srun: error: n1: task 0: Killed\n") == [("hpl", "failed", 4)]
    assert launches(SCRIPT + "+ srun ./xhpl\n") == [("hpl", "truncated", 4)]
    assert launches("srun ./xhpl\n") == [("hpl", "truncated", 1)]


def test_the_name_of_a_file_tells_a_script_too() -> None:
    scanned = scanner_of(None).scan(io.BytesIO(b"run: xhpl\n\tmpirun ./xhpl\n"), "bench/Makefile")
    assert [run.benchmark for run in scanned] == ["unknown"]


@pytest.mark.parametrize("name", ["slurm-7.out", "hpl.log", "job.o123"])
def test_a_log_that_shows_its_script_first_and_ends_in_silence_is_no_script(name: str) -> None:
    head = WHOLE["stream"].text
    head = SCRIPT.replace("xhpl", "stream_c.exe") + head[: head.index("Function")]
    for text, benchmark in ((SCRIPT, "hpl"), (head, "stream")):
        scanned = scanner_of(None).scan(io.BytesIO(text.encode()), f"/logs/{name}")
        assert [(run.benchmark, str(run.status)) for run in scanned] == [(benchmark, "truncated")]
    whole = f'{SCRIPT}test -s hpl.out || echo "cannot read it"\nsrun ./stream_c.exe\n{WHOLE["stream"].text}'
    scanned = scanner_of(None).scan(io.BytesIO(whole.encode()), f"/logs/{name}")
    assert [(run.benchmark, str(run.status)) for run in scanned] == [("stream", "ok")]


def test_a_ruler_of_a_log_is_no_fence_of_a_page() -> None:
    head = WHOLE["stream"].text
    head = head[: head.index("Function")]
    assert launches(f"{'~' * 60}\n{head}")[0][:2] == ("stream", "truncated")
    assert launches(f"~~~\n{head}")[0][0] == "unknown"


def test_a_program_that_explains_its_options_as_it_dies_has_failed() -> None:
    died = "STREAM version $Revision: 5.10 $\nusage: stream -n <number>\nsrun: error: n1: task 0: Exited with exit code 2\n"
    assert launches(died)[0][:2] == ("stream", "failed")


@pytest.mark.parametrize("words", ["XXX.XX", "[FILL IN]", "<value>"])
def test_a_form_that_nobody_filled_in_is_no_log(words: str) -> None:
    for name in ("stream", "hpl", "io500 result.txt", "horovod", "hf-trainer", "osu", "npb", "ior 3.3.0"):
        form = re.sub(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])", words, WHOLE[name].text)
        assert launches(form) == [("unknown", "no-result", 0)], name
    # A number in it is a result, or why it is none.
    stream = WHOLE["stream"].text
    assert launches(stream.replace("16000.0", words))[0][1] == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\ncat <<EOF > config\nSCALE: 20\nedgefactor: 16\nEOF\n",
        "# Benchmarking Exchange\n\nSee below.\n\n```yaml\nModel: resnet50\nBatch size: 32\n```\n",
    ],
)
def test_a_line_of_a_script_or_a_page_with_which_output_begins_is_no_run(text: str) -> None:
    assert launches(text) == [("unknown", "no-result", 0)]
    # Where somebody says what it is, it is that.
    assert scan("#!/bin/sh\nSCALE: 20\n", "graph500")[0].benchmark == "graph500"


def test_results_and_failures_on_a_page_are_told() -> None:
    table = WHOLE["stream"].text
    assert launches(f"# A page\n```\n{table}```\n")[0][:2] == ("stream", "ok")
    cut = table[: table.index("Scale:")]
    assert launches(f"# A page\n```\n{cut}```\n")[0][:2] == ("stream", "truncated")
    died = "STREAM version $Revision: 5.10 $\nsrun: error: n1: task 0: Killed\n"
    assert launches(f"# A page\n```\n{died}```\n")[0][:2] == ("stream", "failed")
    # A job that shows its script first.
    shown = f"job 7 on n1\n#!/bin/bash\n#SBATCH -n 1\n{table[: table.index('Function')]}"
    assert launches(shown)[0][:2] == ("stream", "truncated")
