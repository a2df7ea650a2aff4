"""Containers: what each program is told, how its words read, and real images of what is installed here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from images_made import Images, make_images
from transect.domain.errors import BadInput
from transect.launch import wrapping
from transect.launch.elf import read_elf, this_machine
from transect.launch.images import COMPLETE, complaint, loader_fault, mount_points, root_of
from transect.launch.processes import run
from transect.launch.wrappers import podman
from transect.launch.wrapping import WRAPPERS, Inside, image_fault, outermost, wrapped

FULL = Inside(
    image="/images/torch",
    binds=("/work", "/work/results", "/tmp/x"),
    workdir="/work/run",
    gpus=True,
)
LEAST = Inside(image="/images/torch")
CONF = str(Path(podman.__file__).with_name("enroot.conf"))
PODMAN = [
    "podman", "--cgroup-manager=cgroupfs", "run", "--rm", "--interactive", "--log-driver=none", "--network=host",
    "--pid=host", "--env-host", "--http-proxy=false", "--pull=missing", "--security-opt=seccomp=unconfined",
    "--security-opt=label=disable", "--ulimit=host", "--volume=/dev/shm:/dev/shm", "--volume=/tmp:/tmp",
]  # fmt: skip
ARGUMENTS = {
    "apptainer": (
        ["apptainer", "exec", "/images/torch"],
        ["apptainer", "exec", "--nv", "--bind", "/work", "--bind", "/work/results", "--bind", "/tmp/x",
         "/images/torch"],
    ),
    "charliecloud": (
        ["ch-run", "--private-tmp", "--bind=/tmp", "/images/torch", "--"],
        ["ch-run", "--private-tmp", "--bind=/tmp", "--bind=/work", "--cd=/work/run", "/images/torch", "--"],
    ),
    "podman": (
        [*PODMAN, "--read-only", "--rootfs", "/images/torch"],
        [*PODMAN, "--volume=/work:/work", "--workdir=/work/run", "--device=nvidia.com/gpu=all", "--read-only",
         "--rootfs", "/images/torch"],
    ),
    "enroot": (
        ["enroot", "start", "--conf", CONF, "--mount", "/dev/shm:/dev/shm:none:x-create=dir,rbind",
         "--mount", "/tmp:/tmp:none:x-create=dir,rbind", "/images/torch"],
        ["enroot", "start", "--conf", CONF, "--mount", "/dev/shm:/dev/shm:none:x-create=dir,rbind",
         "--mount", "/tmp:/tmp:none:x-create=dir,rbind", "--mount", "/work:/work:none:x-create=dir,rbind",
         "/images/torch", "/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "transect", "/work/run"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_what_a_wrapper_is_told(name, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os.path, "ismount", lambda path: False)
    wrapper = WRAPPERS.get(name)
    assert (wrapper.argv(LEAST), wrapper.argv(FULL)) == ARGUMENTS[name]


def test_every_wrapper_has_its_arguments_in_the_table():
    assert set(WRAPPERS.names()) == set(ARGUMENTS)


def test_gpus_are_told_to_what_asks_a_variable():
    assert WRAPPERS.get("enroot").variables(FULL)["NVIDIA_VISIBLE_DEVICES"] == "all"
    with pytest.raises(BadInput, match="ch-fromhost --nvidia IMAGE"):
        wrapped("/images/torch", wrapper="charliecloud", gpus=True)


def test_a_podman_that_is_root_asks_for_no_more_than_is_allowed(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    told = [word for word in WRAPPERS.get("podman").argv(LEAST) if word.startswith("--ulimit=")]
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert [word.split("=")[1] for word in told] == ["nofile", "nproc"]
    assert int(told[1].rpartition(":")[2]) <= numbers


def test_an_image_in_podmans_storage_is_no_root_file_system():
    assert WRAPPERS.get("podman").argv(Inside(image="debian:12"))[-1] == "debian:12"
    assert "--rootfs" not in WRAPPERS.get("podman").argv(Inside(image="debian:12"))


@pytest.mark.parametrize("name", ["charliecloud", "enroot"])
def test_a_uri_is_refused_where_it_cannot_run(name):
    with pytest.raises(BadInput, match=r"container docker://debian: .* (takes|starts)"):
        wrapped("docker://debian", wrapper=name)


def test_a_wrapper_that_is_not_there_is_named():
    with pytest.raises(BadInput, match=r"container wrapper 'podmam'.*podman"):
        wrapped("image", wrapper="podmam")


# Captured from charliecloud 0.31, podman 4.3.1 with runc 1.1.5 and glibc 2.36; apptainer's and
# enroot's are those of their sources.
SAID = [
    ("charliecloud", "ch-run[23613]: error: can't stat: /tmp/nope: No such file or directory (ch_core.c:255 2)",
     "image I is not there"),
    ("charliecloud", "ch-run[13456]: error: can't bind: destination not found: /tmp/deb/etc/passwd (ch_core.c:111)",
     "image I has no folder to bind at: /tmp/deb/etc/passwd"),
    ("charliecloud", "ch-run[23612]: error: can't execve(2): /nonexistent: No such file or directory (ch_core.c:410 2)",
     "image I lacks the program /nonexistent, or the loader that this wants"),
    ("podman", "Error: running container create option: stat /tmp/nope: no such file or directory",
     "image I is not there"),
    ("podman", "exec /tmp/arm: exec format error", "image I is made for another architecture"),
    ("podman", 'Error: runc: runc create failed: unable to start container process: exec: "/nonexistent": stat '
     "/nonexistent: no such file or directory: OCI runtime attempted to invoke a command that was not found",
     "image I lacks the program /nonexistent"),
    ("apptainer", "FATAL:   could not open image /x.sif: failed to retrieve path for /x.sif: lstat /x.sif: no such "
     "file or directory", "image I is not there or cannot be opened"),
    ("apptainer", 'FATAL:   "python4": executable file not found in $PATH', "image I lacks the program python4"),
    ("apptainer", "FATAL:   stat /opt/python: no such file or directory", "image I lacks the program /opt/python"),
    ("enroot", "[ERROR] No such file or directory: /x.sqsh", "image I is not there"),
    ("enroot", "enroot-switchroot: failed to execute: /bin/sh: No such file or directory",
     "image I lacks the program /bin/sh, or the loader that this wants"),
    ("charliecloud", "/tmp/m: error while loading shared libraries: libctmissing.so: cannot open shared object file: "
     "No such file or directory", "image I lacks the library libctmissing.so"),
    ("podman", "ImportError: libz.so.1: cannot open shared object file: No such file or directory",
     "image I lacks the library libz.so.1"),
    ("podman", "python: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by python)",
     "image I lacks GLIBC_2.38: its C library is too old"),
    ("podman", "Traceback: ValueError: 3", None),
]  # fmt: skip


@pytest.mark.parametrize(("wrapper", "line", "sentence"), SAID, ids=lambda value: str(value)[:24])
def test_what_a_container_program_says_becomes_one_sentence(wrapper, line, sentence):
    assert image_fault(wrapper, "I", f"[0] x\n{line}\nmore\n") == sentence


def test_a_name_with_a_backslash_stays_as_it_is():
    assert (
        loader_fault(r"/a\1b", "Exec format error")
        == r"image /a\1b is made for another architecture"
    )


def test_folders_within_others_are_not_bound_again():
    assert outermost(["/tmp/a", "/work/b/", "/tmp", "/workshop"]) == (
        "/tmp",
        "/work/b",
        "/workshop",
    )


def test_an_elf_file_is_read():
    found = read_elf(Path(os.path.realpath(sys.executable)))
    assert found is not None and found.machine == this_machine() and "ld-" in found.loader
    assert any(name.startswith("libc.so") for name in found.needed)
    assert read_elf(Path(__file__)) is None


def foreign(folder: Path) -> Path:
    """A root file system whose program is for a machine that is not this one."""
    root = folder / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("/usr/bin")
    content = bytearray(Path(os.path.realpath("/bin/sh")).read_bytes())
    content[18:20] = (183 if this_machine() != "aarch64" else 62).to_bytes(2, "little")
    (root / "usr/bin/dash").write_bytes(content)
    (root / "usr/bin/sh").symlink_to("dash")
    (root / "usr/bin/dash").chmod(0o755)
    return root


def test_an_image_for_another_machine_is_known_before_it_runs(tmp_path):
    root = foreign(tmp_path)
    other = "aarch64" if this_machine() != "aarch64" else "x86_64"
    assert (
        complaint(str(root))
        == f"image {root} is made for {other}, and this machine is {this_machine()}"
    )


def test_an_image_that_is_not_there_or_not_whole_is_named(tmp_path):
    assert complaint(f"{tmp_path}/gone") == f"image {tmp_path}/gone is not there"
    (tmp_path / "root").mkdir()
    assert (
        complaint(str(tmp_path))
        == f"image {tmp_path} is not whole: {COMPLETE} is missing or cannot be read"
    )
    (tmp_path / COMPLETE).write_text("{")
    assert "is not whole" in str(complaint(str(tmp_path)))
    (tmp_path / COMPLETE).write_text("{}")
    assert complaint(str(tmp_path)) is None
    assert root_of(str(tmp_path)) == f"{tmp_path}/root"
    assert root_of(str(tmp_path), "squashfs") == f"{tmp_path}/image.sqfs"
    assert complaint("docker://debian") is None


def test_a_folder_that_cannot_be_shown_inside_is_named(tmp_path):
    (tmp_path / "work").write_text("a file")
    with pytest.raises(
        BadInput, match=r"has no folder /work/a, where that of the host is to appear"
    ):
        mount_points(tmp_path, ("/work/a",))
    mount_points(tmp_path, ("/data/b",))
    assert (tmp_path / "data/b").is_dir()


# From here on real images.

REAL = ("charliecloud", "podman")


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Images:
    if wrapping.program_says("charliecloud") is None:
        pytest.skip("ch-run is not on PATH: scripts/system-packages installs it")
    made = make_images(tmp_path_factory.mktemp("images"))
    if made.facts["status"] != "ok":
        pytest.skip(f"no image runs here: {made.facts['message']}")
    return made


@pytest.fixture(scope="module", params=REAL)
def wrapper(request, images, tmp_path_factory) -> str:
    """A wrapper that runs here; else its own words are the reason of the skip."""
    facts = images.built(f"tiny@{request.param}", tmp_path_factory.mktemp("stamp") / "stamp.json")
    if facts["status"] != "ok":
        pytest.skip(facts["message"])
    return request.param


def start(
    images: Images, wrapper: str, folder: Path, *command: str
) -> tuple[list[str], dict[str, str]]:
    wrap, variables = wrapped(
        str(images.image), wrapper=wrapper, binds=[str(folder)], workdir=str(folder)
    )
    return [*wrap, *command], variables


def marked(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CONTAINER_TEST") == word:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_two_builders_make_one_image(images):
    assert images.said.count("making the image of environment 'tiny'") == 1
    assert sorted(path.name for path in images.image.iterdir()) == ["root", COMPLETE]
    assert not list(images.image.parent.glob(".*"))


def test_a_command_runs_inside_with_its_folders_and_variables(images, wrapper, tmp_path):
    mark = images.image / "root/etc/transect-mark"
    mark.write_text("inside")
    program = (
        "import os, sys; open('made', 'w').write(open('/etc/transect-mark').read() + os.environ['RANK']);"
        "print(os.getcwd(), sys.argv[1:], sys.stdin.read());"
        "open('/etc/transect-mark', 'w')"
    )
    argv, variables = start(images, wrapper, tmp_path, images.python, "-c", program, "two words")
    done = subprocess.run(
        argv,
        env=os.environ | variables | {"RANK": "3"},
        input="asked",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == f"{tmp_path} ['two words'] asked\n"
    assert (tmp_path / "made").read_text() == "inside3"
    assert done.returncode == 1 and "OSError" in done.stderr and mark.read_text() == "inside"


def test_exit_codes_come_through(images, wrapper, tmp_path):
    argv, variables = start(images, wrapper, tmp_path, "sh", "-c", "exit 41")
    assert subprocess.run(argv, env=os.environ | variables, timeout=120).returncode == 41


def test_the_end_of_time_ends_what_runs_inside(images, wrapper, tmp_path):
    # A grandchild that has left the session, as ranks' helpers do.
    program = "import os, time; os.fork() or os.setsid(); print('up', flush=True); time.sleep(600)"
    argv, variables = start(images, wrapper, tmp_path, images.python, "-c", program)
    word = f"{wrapper}-{os.getpid()}"
    log = tmp_path / "log"
    outcome = run([(argv, variables | {"CONTAINER_TEST": word})], log=log, cwd=tmp_path, seconds=5)
    assert outcome.end == "timeout" and log.read_text().count("up") == 2
    assert [process.cmdline() for process in marked(word) if process.status() != "zombie"] == []


def test_memory_that_is_held_inside_counts(images, wrapper, tmp_path):
    program = "import time; held = bytearray(b'1') * (400 << 20); time.sleep(600)"
    argv, variables = start(images, wrapper, tmp_path, images.python, "-c", program)
    outcome = run(
        [(argv, variables)], log=tmp_path / "log", cwd=tmp_path, seconds=300, memory_bytes=300 << 20
    )
    assert outcome.end == "out-of-memory" and outcome.peak_bytes > 300 << 20


def test_a_library_that_is_missing_is_named(images, wrapper, tmp_path):
    image = tmp_path / "image"
    shutil.copytree(images.image, image, symlinks=True, copy_function=os.link)
    (library,) = {path.resolve() for path in (image / "root").rglob("libz.so.1")}
    library.unlink()
    argv, variables = wrapped(str(image), wrapper=wrapper)
    log = tmp_path / "log"
    outcome = run(
        [([*argv, images.python, "-c", "import zlib"], variables)],
        log=log,
        cwd=tmp_path,
        seconds=120,
    )
    assert outcome.code
    assert (
        image_fault(wrapper, str(image), log.read_text())
        == f"image {image} lacks the library libz.so.1"
    )


def test_a_builder_that_was_killed_leaves_nothing_that_is_used(images, tmp_path):
    left = images.image.parent / f".{images.image.name}.12345"
    (left / "root").mkdir(parents=True)
    (images.image / COMPLETE).unlink()
    builder = images.build("tiny@charliecloud", tmp_path / "first.json")
    assert builder.stdout is not None and "making the image" in builder.stdout.readline()
    until = time.monotonic() + 120
    while time.monotonic() < until and not list(
        images.image.parent.glob(f".{images.image.name}.*/root/usr")
    ):
        time.sleep(0.01)
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    assert complaint(str(images.image)) is not None
    facts = images.built("tiny@charliecloud", tmp_path / "second.json")
    assert facts["status"] == "ok" and "making the image" in facts["said"]
    assert json.loads((images.image / COMPLETE).read_text())["name"] == "tiny"
    assert not list(images.image.parent.glob(".*"))


def test_another_definition_is_another_image(images, tmp_path):
    definition = images.plugins / "envs/tiny/image.yaml"
    text = definition.read_text()
    definition.write_text(text.replace("sleep", "sleep, ls"))
    try:
        facts = images.built("tiny@charliecloud", tmp_path / "stamp.json")
    finally:
        definition.write_text(text)
    assert facts["status"] == "ok" and facts["image"] != str(images.image)
    assert facts["python"] == images.python, "the environment itself stays"
    assert (
        list(Path(facts["image"], "root").rglob("bin/ls")) and complaint(str(images.image)) is None
    )


def test_a_base_from_elsewhere_must_be_the_one_that_was_meant(images, tmp_path):
    definition = images.plugins / "envs/tiny/image.yaml"
    text = definition.read_text()
    (tmp_path / "base.tar").write_bytes(b"no archive")
    definition.write_text(f"base: archive\narchive: {tmp_path}/base.tar\nsha256: {'0' * 64}\n")
    try:
        facts = images.built("tiny@charliecloud", tmp_path / "stamp.json")
    finally:
        definition.write_text(text)
    assert (
        facts["status"] == "failed"
        and f"expected {'0' * 64}: it is another one" in facts["message"]
    )
    assert not Path(facts["image"]).exists()


def test_a_program_that_is_not_here_skips_its_cells(images, tmp_path):
    if wrapping.program_says("enroot") is not None:
        pytest.skip("enroot is here")
    facts = images.built("tiny@enroot", tmp_path / "stamp.json")
    assert facts["status"] == "failed" and facts["skips"] is True
    assert facts["message"] == "enroot is not on PATH here, so nothing can run in enroot"


def test_launch_runs_ranks_in_the_image_of_an_environment(images, wrapper, tmp_path):
    command = [
        sys.executable, "-m", "transect", "launch", "--framework", "torch", "--strategy", "ddp", "--launcher", "plain",
    ]  # fmt: skip
    program = "import os, sys; print(os.environ['RANK'], os.path.exists('/etc/debian_version'), sys.prefix)"
    done = subprocess.run(
        [*command, "--ranks-per-node", "2", "--container", f"{wrapper}:tiny", "--", "python", "-c", program],
        env=os.environ | images.variables, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    prefix = Path(images.python).parents[1]
    assert sorted(done.stdout.splitlines()) == [f"[{r}] {r} False {prefix}" for r in range(2)], (
        done.stderr
    )


def test_launch_says_which_image_is_not_made(images, tmp_path):
    command = [
        sys.executable,
        "-m",
        "transect",
        "launch",
        "--framework",
        "numpy",
        "--strategy",
        "single",
    ]
    empty = images.variables | {"TRANSECT_ENVS": str(tmp_path / "none")}
    done = subprocess.run([*command, "--container", "tiny", "--", "true"], env=os.environ | empty,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 3 and "`transect image tiny`" in done.stderr
    done = subprocess.run([*command, "--container", "podman:/no/image", "--", "true"], env=os.environ | empty,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 3 and "image /no/image is not there" in done.stderr
