"""Containers: what each program is told, how its words read, and real images of what is installed here."""

from __future__ import annotations

import os
import resource
import stat
import sys
from pathlib import Path

import pytest

from transect.domain.errors import BadInput
from transect.engine.elf import read_elf
from transect.launch.images import COMPLETE, complaint, mount_points, root_of
from transect.launch.wrappers import podman
from transect.launch.wrapping import WRAPPERS, Inside, Wrapper, image_fault, program_says, wrapped

FULL = Inside(image="/images/torch", binds=("/users", "/users/results", "/tmp/x"), workdir="/users/run", gpus=True)
MIN_COUNT = Inside(image="/images/torch")
CONF = str(Path(podman.__file__).with_name("enroot.conf"))
RUN = (
    "--rm --interactive --log-driver=none --pull=missing --network=host --pid=host --security-opt=seccomp=unconfined "
    "--security-opt=label=disable --volume=/dev/shm:/dev/shm --volume=/tmp:/tmp"
)
RUN_FULL = f"{RUN} --volume=/users:/users --workdir=/users/run"
PODMAN = "podman --cgroup-manager=cgroupfs run"
PODMAN_END = "--env-host --http-proxy=false --ulimit=host"
DOCKER = 'bash -c exec docker run --env-file <(compgen -e) "$@" transect'
DOCKER_END = f"--ulimit=nofile=100:200 --ulimit=nproc=50:50 --read-only --user=1000:{os.getegid()}"
ENROOT = f"enroot start --conf {CONF} --mount /dev/shm:/dev/shm:none:x-create=dir,rbind --mount /tmp:/tmp:none:x-create=dir,rbind"
ARGUMENTS = {
    "apptainer": (
        "apptainer exec /images/torch",
        "apptainer exec --nv --bind /users --bind /users/results --bind /tmp/x /images/torch",
    ),
    "charliecloud": (
        "ch-run --private-tmp --bind=/tmp /images/torch --",
        "ch-run --private-tmp --bind=/tmp --bind=/users --cd=/users/run /images/torch --",
    ),
    "docker": (
        f"{DOCKER} {RUN} {DOCKER_END} /images/torch",
        f"{DOCKER} {RUN_FULL} {DOCKER_END} --gpus=all /images/torch",
    ),
    "podman": (
        f"{PODMAN} {RUN} {PODMAN_END} --read-only --rootfs /images/torch",
        f"{PODMAN} {RUN_FULL} {PODMAN_END} --device=nvidia.com/gpu=all --read-only --rootfs /images/torch",
    ),
    "enroot": (
        f"{ENROOT} /images/torch",
        f"{ENROOT} --mount /users:/users:none:x-create=dir,rbind /images/torch "
        '/bin/sh -c cd "$1" && shift && exec "$@" transect /users/run',
    ),
}


@pytest.mark.parametrize("name", WRAPPERS.names())
def test_what_a_wrapper_is_told(name, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os.path, "ismount", lambda path: False)
    monkeypatch.setattr(
        resource, "getrlimit", {resource.RLIMIT_NOFILE: (100, 200), resource.RLIMIT_NPROC: (20, 50)}.get
    )
    wrapper = WRAPPERS.get(name)
    assert (" ".join(wrapper.argv(MIN_COUNT)), " ".join(wrapper.argv(FULL))) == ARGUMENTS[name]


def test_gpus_are_told_to_what_asks_a_variable():
    assert WRAPPERS.get("enroot").variables(FULL)["NVIDIA_VISIBLE_DEVICES"] == "all"
    with pytest.raises(BadInput, match="ch-fromhost --nvidia IMAGE"):
        wrapped("/images/torch", wrapper="charliecloud", gpus=True)


def test_a_podman_that_is_root_asks_for_no_more_than_is_allowed(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    limits = [word for word in WRAPPERS.get("podman").argv(MIN_COUNT) if word.startswith("--ulimit=")]
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert [word.split("=")[1] for word in limits] == ["nofile", "nproc"]
    assert int(limits[1].rpartition(":")[2]) <= numbers


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (
            "folder",
            r"docker runs no folder: `tar -C \S+/folder -c \. \| docker import - NAME` makes docker://NAME of it",
        ),
        ("file", r"docker runs no file: `docker load --input \S+/file` brings it into its storage, as docker://NAME"),
        ("oras://image", "docker runs docker://NAME, not oras://image"),
    ],
)
def test_docker_says_how_an_image_comes_into_its_storage(image, message, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=message):
        wrapped(image, wrapper="docker")
    assert wrapped("docker://debian:12", wrapper="docker")[0][-1] == "debian:12"


def test_what_docker_imported_is_known_by_how_it_was_made(tmp_path):
    """One that was made again, or in another cache, has other libraries or its environment elsewhere."""
    names = set()
    for made in ('{"environment": "/a/tiny"}', '{"environment": "/b/tiny"}'):
        (tmp_path / "tiny-1a" / "root").mkdir(parents=True, exist_ok=True)
        (tmp_path / "tiny-1a" / "transect-image.json").write_text(made)
        names.add(wrapped(str(tmp_path / "tiny-1a"), wrapper="docker")[0][-1])
    assert len(names) == 2 and all(name.startswith("localhost/transect:tiny-1a-") for name in names)


@pytest.mark.env
def test_a_docker_whose_daemon_does_not_answer_is_not_here(tmp_path, monkeypatch):
    program = tmp_path / "docker"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for answer, said in (("exit 1", None), ("", ("docker", "Docker version 28"))):
        program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo Docker version 28 || {answer or "exit 0"}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        program_says.cache_clear()
        assert program_says("docker") == said
    program_says.cache_clear()


@pytest.mark.parametrize("name", ["charliecloud", "enroot"])
def test_a_uri_is_refused_where_it_cannot_run(name):
    with pytest.raises(BadInput, match=r"docker://debian: .* (takes|starts)"):
        wrapped("docker://debian", wrapper=name)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("podman", "/r/a:b"), ("charliecloud", "/r/a:b"), ("apptainer", "/r/a,b"), ("enroot", "/r/a b")],
)
def test_a_folder_that_cannot_be_shown_is_named(name, folder):
    for how in ({"binds": [folder]}, {"workdir": folder}):
        with pytest.raises(BadInput, match=f"{name} .* '{folder}'"):
            wrapped("/images/torch", wrapper=name, **how)
    assert wrapped("/images/torch", wrapper="podman", binds=["/r/a b é"])


def test_an_image_beside_one_is_a_folder_and_no_name(tmp_path, monkeypatch):
    (tmp_path / "debian").mkdir()
    monkeypatch.chdir(tmp_path)
    argv = wrapped("debian", wrapper="podman")[0]
    assert argv[-2:] == ["--rootfs", f"{tmp_path}/debian"]
    assert wrapped("alpine", wrapper="podman")[0][-1] == "alpine"


# Captured from charliecloud 0.31, podman 4.3.1 with runc 1.1.5 and glibc 2.36; apptainer's and
# enroot's are those of their sources.
SAID = [
    ("charliecloud", "ch-run[23613]: error: can't stat: /tmp/nope: No such file or directory (ch_core.c:255 2)"),
    ("charliecloud", "ch-run[13456]: error: can't bind: destination not found: /tmp/deb/etc/passwd (ch_core.c:111)"),
    (
        "charliecloud",
        "ch-run[23612]: error: can't execve(2): /nonexistent: No such file or directory (ch_core.c:410 2)",
    ),
    ("podman", "Error: running container create option: stat /tmp/nope: no such file or directory"),
    ("podman", "exec /tmp/arm: exec format error"),
    (
        "podman",
        'Error: runc: runc create failed: unable to start container process: exec: "/nonexistent": stat '
        "/nonexistent: no such file or directory: OCI runtime attempted to invoke a command that was not found",
    ),
    # Of Docker's own sources; what podman-docker says is podman's.
    (
        "docker",
        "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime "
        'create failed: runc create failed: unable to start container process: exec: "nope": executable file not found in '
        "$PATH: unknown",
    ),
    ("docker", "docker: Error response from daemon: pull access denied for nope, repository does not exist"),
    ("docker", "Unable to find image 'localhost/transect:tiny-1a' locally"),
    (
        "apptainer",
        "FATAL:   could not open image /x.sif: failed to retrieve path for /x.sif: lstat /x.sif: no such "
        "file or directory",
    ),
    ("apptainer", 'FATAL:   "python4": executable file not found in $PATH'),
    ("apptainer", "FATAL:   stat /opt/python: no such file or directory"),
    ("enroot", "[ERROR] No such file or directory: /x.sqsh"),
    ("enroot", "enroot-switchroot: failed to execute: /bin/sh: No such file or directory"),
    (
        "charliecloud",
        "/tmp/m: error while loading shared libraries: libctmissing.so: cannot open shared object file: "
        "No such file or directory",
    ),
    ("podman", "ImportError: libz.so.1: cannot open shared object file: No such file or directory"),
    ("podman", "python: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by python)"),
]


@pytest.mark.parametrize(("wrapper", "line"), SAID)
def test_what_a_container_program_says_of_an_image_is_told(wrapper, line):
    assert image_fault(wrapper, "I", f"[0] x\n{line}\nmore\n") == f"image I: {line}"
    assert image_fault(wrapper, "I", "[0] x\nTraceback: ValueError: 3\n") is None


def test_a_wrapper_with_several_patterns_of_faults_is_refused():
    with pytest.raises(TypeError, match=r"Old.faults: expected one regular expression, found \('FATAL', 'ERROR'\)"):
        type("Old", (Wrapper,), {"faults": ("FATAL", "ERROR")})


def test_an_elf_file_is_read(tmp_path):
    found = read_elf(Path(os.path.realpath(sys.executable)))
    assert found is not None and "ld-" in found.loader
    assert any(name.startswith("libc.so") for name in found.needed)
    assert read_elf(Path(__file__)) is None
    content = bytearray(Path(os.path.realpath(sys.executable)).read_bytes())
    # Of another machine, and cut.
    for damaged in (content[:18] + b"\xff\xff" + content[20:], content[:100]):
        (tmp_path / "other").write_bytes(damaged)
        assert read_elf(tmp_path / "other") is None


def test_an_image_that_is_not_there_or_not_whole_is_named(tmp_path):
    assert f"image {tmp_path}/gone is not" in str(complaint(f"{tmp_path}/gone"))
    (tmp_path / "root").mkdir()
    assert f"not whole: {COMPLETE} is" in str(complaint(str(tmp_path)))
    (tmp_path / COMPLETE).write_text("{")
    assert "not whole" in str(complaint(str(tmp_path)))
    (tmp_path / COMPLETE).write_text("{}")
    assert complaint(str(tmp_path)) is None
    assert root_of(str(tmp_path)) == f"{tmp_path}/root"
    assert root_of(str(tmp_path), "squashfs") == f"{tmp_path}/image.sqfs"
    assert complaint("docker://debian") is None


def test_a_folder_that_cannot_be_shown_inside_is_named(tmp_path):
    (tmp_path / "users").write_text("a file")
    with pytest.raises(BadInput, match=r"no folder /users/a,"):
        mount_points(tmp_path, ("/users/a",))
    mount_points(tmp_path, ("/data/b",))
    assert (tmp_path / "data/b").is_dir()
