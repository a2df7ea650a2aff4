"""Real images, run by the container programs that are here: made, used, broken, killed."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from cell_jobs import OneLine, make_job
from checkouts import ROOT
from launching import LAUNCH, TORCH
from transect.domain.record import Cause, Status
from transect.engine.build_image import image_changed
from transect.engine.image_root import NotMade, _unpack
from transect.engine.job import Job
from transect.engine.payload import execute
from transect.launch import wrapping
from transect.launch.images import COMPLETE, complaint, imported_name
from transect.launch.processes import run
from transect.launch.wrapping import wrapped
from transect.planning.images import ImageDefinition

pytestmark = pytest.mark.env

REAL = ("charliecloud", "podman")


@dataclass(frozen=True)
class Images:
    """A plug-in folder with `envs/tiny`, its cache, and what two builders printed of `tiny@charliecloud`."""

    plugins: Path
    cache: Path
    facts: dict[str, Any]
    output: str

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to find both."""
        return {
            "TRANSECT_PLUGINS": str(self.plugins),
            "TRANSECT_ENVS": str(self.cache),
            "PYTHONPATH": str(ROOT / "src"),
        }

    @property
    def image(self) -> Path:
        return Path(self.facts["image"])

    @property
    def python(self) -> str:
        return str(self.facts["python"])

    def build(self, name: str, out: Path) -> subprocess.Popen[str]:
        """Start the rule's command for an environment."""
        command = [sys.executable, "-m", "transect.engine.build_environment", "--name", name, "--out", str(out)]
        return subprocess.Popen(
            command, env=os.environ | self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def built(self, name: str, out: Path) -> dict[str, Any]:
        """Build, and return the stamp."""
        process = self.build(name, out)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        return json.loads(out.read_text()) | {"output": output}


def make_images(folder: Path) -> Images:
    """Make the image by two processes that begin at the same time."""
    source = folder / "plugins" / "envs" / "tiny"
    source.mkdir(parents=True)
    (source / "requirements.txt").write_text("")
    (source / "image.yaml").write_text("base: host\nprograms: [sh, env, cat, sleep]\n")
    images = Images(folder / "plugins", folder / "cache", {}, "")
    builders = [images.build("tiny@charliecloud", folder / f"stamp-{i}.json") for i in range(2)]
    output = "".join(builder.communicate(timeout=600)[0] for builder in builders)
    assert [builder.returncode for builder in builders] == [0, 0], output
    first, second = (json.loads((folder / f"stamp-{i}.json").read_text()) for i in range(2))
    assert first["image"] == second["image"] and first["status"] == second["status"]
    return Images(images.plugins, images.cache, first, output)


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


def start(images: Images, wrapper: str, folder: Path, *command: str) -> tuple[list[str], dict[str, str]]:
    wrap, variables = wrapped(str(images.image), wrapper=wrapper, binds=[str(folder)], workdir=str(folder))
    return [*wrap, *command], variables


def alive(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = process.environ().get("CONTAINER_TEST") == word
            found += [process] if ours and process.status() != psutil.STATUS_ZOMBIE else []
    return found


def test_two_builders_make_one_image(images):
    assert images.output.count("image of environment 'tiny'") == 1
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
        argv, env=os.environ | variables | {"RANK": "3"}, input="asked", capture_output=True, text=True, timeout=600
    )
    assert done.stdout == f"{tmp_path} ['two words'] asked\n"
    assert (tmp_path / "made").read_text() == "inside3"
    assert done.returncode == 1 and "OSError" in done.stderr and mark.read_text() == "inside"


def test_the_end_of_time_ends_what_runs_inside(images, wrapper, tmp_path):
    # A grandchild that has left the session, as ranks' helpers do.
    program = "import os, time; os.fork() or os.setsid(); print('up', flush=True); time.sleep(600)"
    argv, variables = start(images, wrapper, tmp_path, images.python, "-c", program)
    word = f"{wrapper}-{os.getpid()}"
    log = tmp_path / "log"
    outcome = run([(argv, variables | {"CONTAINER_TEST": word})], log=log, cwd=tmp_path, seconds=5)
    assert outcome.end == "timeout" and log.read_text().count("up") == 2
    assert [process.cmdline() for process in alive(word)] == []


def test_memory_that_is_held_inside_counts(images, wrapper, tmp_path):
    program = "import time; held = bytearray(b'1') * (400 << 20); time.sleep(600)"
    argv, variables = start(images, wrapper, tmp_path, images.python, "-c", program)
    outcome = run([(argv, variables)], log=tmp_path / "log", cwd=tmp_path, seconds=300, memory_bytes=300 << 20)
    assert outcome.end == "out-of-memory" and outcome.peak_bytes > 300 << 20


def job_in(image: Path, images: Images, wrapper: str, folder: Path) -> Job:
    facts = images.facts | {"name": f"tiny@{wrapper}", "wrapper": wrapper, "image": str(image)}
    job = make_job(folder, cell_limits={"seconds": 120}, facts=facts)
    return replace(job, python=images.python)


def test_a_library_that_is_missing_is_the_records_cause(images, wrapper, tmp_path):
    image = tmp_path / "image"
    shutil.copytree(images.image, image, symlinks=True, copy_function=os.link)
    (library,) = {path.resolve() for path in (image / "root").rglob("libz.so.1")}
    library.unlink()
    result, _, _ = execute(job_in(image, images, wrapper, tmp_path), OneLine("import zlib"))
    assert (result.status, result.cause) == (Status.FAILED, Cause.MISSING_DEPENDENCY)
    assert result.message.startswith(f"image {image}: ") and "libz.so.1: cannot open" in result.message


def test_a_payload_that_is_killed_inside_is_a_record_and_leaves_nobody(images, wrapper, tmp_path):
    word = f"killed-{wrapper}-{os.getpid()}"
    # It ends itself as the kernel's memory killer would, and leaves a child.
    program = "import os, signal, time; os.fork() or time.sleep(600); os.kill(os.getpid(), signal.SIGKILL)"
    result, outcome, _ = execute(job_in(images.image, images, wrapper, tmp_path), OneLine(program, CONTAINER_TEST=word))
    assert outcome is not None and (result.status, result.cause) == (Status.FAILED, Cause.KILLED), result.message
    assert [process.cmdline() for process in alive(word)] == []


def test_a_builder_that_was_killed_leaves_nothing_that_is_used(images, tmp_path):
    left = images.image.parent / f".{images.image.name}.12345"
    (left / "root").mkdir(parents=True)
    (images.image / COMPLETE).unlink()
    builder = images.build("tiny@charliecloud", tmp_path / "first.json")
    assert builder.stdout is not None and "making the image" in builder.stdout.readline()
    until = time.monotonic() + 120
    while time.monotonic() < until and not list(images.image.parent.glob(f".{images.image.name}.*/root/usr")):
        time.sleep(0.01)
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    assert complaint(str(images.image)) is not None
    facts = images.built("tiny@charliecloud", tmp_path / "second.json")
    assert facts["status"] == "ok" and "making the image" in facts["output"]
    assert json.loads((images.image / COMPLETE).read_text())["name"] == "tiny"
    assert not list(images.image.parent.glob(".*"))


def test_a_base_may_be_an_archive_and_says_which_libraries_it_lacks(images, tmp_path):
    definition = images.plugins / "envs/tiny/image.yaml"
    text, archive = definition.read_text(), tmp_path / "base.tar"
    root = images.image / "root"
    stamps = []
    try:
        for without in ("libz.so", None):
            with tarfile.open(archive, "w") as made:
                # A base without Python, as one from a registry would be.
                for name in ("usr/bin", "usr/lib", "usr/lib64", "lib64", "lib", "bin"):
                    made.add(root / name, name, filter=lambda m, w=without: None if w and w in m.name else m)
            sha = hashlib.sha256(archive.read_bytes()).hexdigest()
            definition.write_text(f"base: archive\narchive: {archive}\nsha256: {sha}\n")
            stamps.append(images.built("tiny@charliecloud", tmp_path / "stamp.json"))
    finally:
        definition.write_text(text)
    assert stamps[0]["status"] == "failed"
    assert "lacks libz.so.1 (asked" in stamps[0]["message"]
    assert not Path(stamps[0]["image"]).exists()
    assert stamps[1]["status"] == "ok", stamps[1]["message"]
    assert stamps[1]["made_of"]["sha256"] == sha


@pytest.mark.parametrize("given", [{"archive": "base.tar"}, {"sha256": "0" * 64}])
def test_an_archive_is_taken_with_its_checksum_only(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="needs `archive` and its `sha256`"):
        ImageDefinition(base="archive", **given)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([("etc", "link"), ("etc/own", "file")], "outside the destination"),
        ([("own", "link"), ("own", "file")], "outside the destination"),
        ([("own", "link"), ("hard", "hard own")], "outside the destination"),
        ([("hard", "hard ../host/own")], "outside the destination"),
        ([("hard", "hard {outside}/own")], "cannot be read"),
        ([("usr/sh", "file"), ("/bin", "hard /usr/sh")], ""),
        ("another checksum", "expected 0000"),
        ("cut", "cannot be read"),
    ],
)
def test_an_archive_is_whole_and_writes_nothing_outside_of_its_root(tmp_path, kinds, message):
    outside, root, archive = tmp_path / "host", tmp_path / "root", tmp_path / "base.tar"
    outside.mkdir()
    root.mkdir()
    file = outside / "own"
    file.write_text("mine")
    file.chmod(0o600)
    with tarfile.open(archive, "w") as made:
        for name, kind in kinds if isinstance(kinds, list) else ():
            member = tarfile.TarInfo(name)
            what, _, link = kind.partition(" ")
            member.type = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}[what]
            member.linkname = link.format(outside=outside) or str(outside if name == "etc" else file)
            member.mode = 0o755
            made.addfile(member)
    if kinds == "cut":
        archive.write_bytes(gzip.compress(os.urandom(200_000))[:100_000])
    sha = hashlib.sha256(archive.read_bytes()).hexdigest() if kinds != "another checksum" else "0" * 64
    definition = ImageDefinition(base="archive", archive="base.tar", sha256=sha)
    with contextlib.nullcontext() if not message else pytest.raises(NotMade, match=re.escape(message)):
        _unpack(root, definition, tmp_path)
    assert message or (root / "bin").samefile(root / "usr/sh")
    assert file.read_text() == "mine" and file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in outside.iterdir()] == ["own"]


def test_its_builder_may_write_to_what_an_archive_closes(tmp_path):
    # As bases of the Red Hat family have them: one who is not root puts more into usr/bin, and packs all of it.
    root, archive = tmp_path / "root", tmp_path / "base.tar"
    root.mkdir()
    with tarfile.open(archive, "w") as made:
        for name, kind, mode in (("usr/bin", tarfile.DIRTYPE, 0o555), ("shadow", tarfile.REGTYPE, 0)):
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, mode
            made.addfile(member)
    sha = hashlib.sha256(archive.read_bytes()).hexdigest()
    _unpack(root, ImageDefinition(base="archive", archive="base.tar", sha256=sha), tmp_path)
    modes = [(root / name).stat().st_mode & 0o777 for name in ("usr/bin", "shadow")]
    assert modes == [0o755, 0o600]


def test_a_program_that_is_not_here_skips_its_cells(images, tmp_path):
    if wrapping.program_says("enroot") is not None:
        pytest.skip("enroot is here")
    facts = images.built("tiny@enroot", tmp_path / "stamp.json")
    assert facts["status"] == "failed" and facts["skips"] is True
    assert facts["message"].startswith("enroot is not")


def test_launch_runs_ranks_in_the_image_of_an_environment(images, wrapper, tmp_path):
    command = [*LAUNCH, *TORCH, "--launcher", "plain"]
    program = "import os, sys; print(os.environ['RANK'], os.path.exists('/etc/debian_version'), sys.prefix)"
    done = subprocess.run(
        [*command, "--ranks-per-node", "2", "--container", f"{wrapper}:tiny", "--", "python", "-c", program],
        env=os.environ | images.variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    prefix = Path(images.python).parents[1]
    assert sorted(done.stdout.splitlines()) == [f"[{r}] {r} False {prefix}" for r in range(2)], done.stderr


def test_docker_runs_what_is_imported(images, tmp_path, monkeypatch):
    """The distribution's `podman-docker`, which may lie behind a client of Docker's without its daemon."""
    program = Path("/usr/bin/docker")
    if not program.is_file() or b"podman" not in program.read_bytes()[:4096]:
        pytest.skip("podman-docker is not installed: scripts/system-packages does")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    facts = images.built("tiny@docker", tmp_path / "stamp.json")
    if facts["status"] != "ok":
        pytest.skip(facts["message"])
    code = (
        "import os; print(os.environ['OWN'], os.getcwd(), os.getuid(), os.path.exists('/etc/debian_version'));"
        "open('made', 'w'); open('/etc/made', 'w')"
    )
    argv, variables = start(images, "docker", tmp_path, images.python, "-c", code)
    done = subprocess.run(
        argv, env=os.environ | variables | {"OWN": "two words\nand a line"}, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == f"two words\nand a line {tmp_path} {os.getuid()} False\n", done.stderr
    assert "Read-only file system: '/etc/made'" in done.stderr and (tmp_path / "made").owner() == Path.home().owner()
    assert variables["TRANSECT_DETACHED"] == "1"
    assert not image_changed("tiny@docker", facts)
    subprocess.run(["docker", "rmi", imported_name(images.image)], check=True, capture_output=True)
    assert image_changed("tiny@docker", facts)


@pytest.mark.parametrize(
    ("container", "message"), [("tiny", "`transect image tiny`"), ("podman:/no/image", "image /no/image ")]
)
def test_launch_says_which_image_is_not_made(images, tmp_path, container, message):
    command = [*LAUNCH, "--framework", "numpy", "--strategy", "single"]
    variables = os.environ | images.variables | {"TRANSECT_ENVS": str(tmp_path / "none")}
    done = subprocess.run(
        [*command, "--container", container, "--", "true"], env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 3 and message in done.stderr
