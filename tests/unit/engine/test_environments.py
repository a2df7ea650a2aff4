"""Lock hashes, what a failed build says, and compiled wheels that are kept."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from checkouts import ROOT
from transect.domain.errors import BadInput
from transect.engine import build_environment
from transect.planning import environments

SHARED = ROOT / "envs" / "shared"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def lock_hash(tmp_path, monkeypatch):
    """Lock hashes of the environments below `tmp_path`, read anew each time."""
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache"))
    environments._lock_of_files.cache_clear()

    def read(name: str) -> str:
        environments._lock_of_files.cache_clear()
        return environments.lock_hash(name)

    yield read
    environments._lock_of_files.cache_clear()


def test_shared_files_count_where_the_script_uses_them(lock_hash, tmp_path):
    write(
        tmp_path / "envs",
        {
            "one/requirements.txt": "",
            "one/build.sh": 'bash "$(dirname "$0")/../shared/tool.sh" "$1"\n',
            "two/requirements.txt": "",
            "two/build.sh": "true\n",
            "shared/tool.sh": 'cat "$shared/deeper.txt"  # and shared/absent.txt\n',
            "shared/deeper.txt": "1",
            "shared/other.sh": "1",
        },
    )
    found = environments.shared_files(tmp_path / "envs" / "one")
    assert [path.name for path in found] == ["deeper.txt", "tool.sh"]
    first, two = lock_hash("one"), lock_hash("two")
    write(tmp_path / "envs", {"shared/other.sh": "2"})
    assert (lock_hash("one"), lock_hash("two")) == (first, two)
    for name in ("shared/tool.sh", "shared/deeper.txt"):
        with (tmp_path / "envs" / name).open("a") as stream:
            stream.write("\n")
        assert lock_hash("one") != first
        assert lock_hash("two") == two
        first = lock_hash("one")


def test_every_file_of_an_environment_counts_and_what_it_lists(lock_hash, tmp_path):
    write(
        tmp_path,
        {
            "envs/one/requirements.txt": "",
            "envs/one/patches/a.patch": "1",
            "envs/one/sources.txt": "# what is compiled\nsrc/runner  # all of it\nsrc/common.h\n",
            "src/runner/deep/main.c": "1",
            "src/common.h": "1",
            "src/other.c": "1",
        },
    )
    (tmp_path / "src" / "runner" / "loop").symlink_to("..")
    (tmp_path / "src" / "runner" / "nowhere").symlink_to("gone")
    before = lock_hash("one")
    write(tmp_path, {"src/other.c": "2", "src/runner/__pycache__/x.pyc": "made by a reader"})
    assert lock_hash("one") == before
    for name in ("envs/one/patches/a.patch", "src/runner/deep/main.c", "src/common.h"):
        write(tmp_path, {name: "2"})
        assert lock_hash("one") != before, name
        before = lock_hash("one")
    (tmp_path / "src/runner/deep/main.c").rename(tmp_path / "src/runner/deep/other.c")
    assert lock_hash("one") != before


@pytest.mark.parametrize("name", environments.environment_names())
def test_what_a_build_script_compiles_is_among_its_sources(name):
    folder = environments.environment_source(name)
    scripts = [folder / "build.sh", *environments.shared_files(folder)]
    script_text = "".join(path.read_text() for path in scripts if path.is_file() and path.suffix == ".sh")
    counted = environments.source_files(folder)
    for place in set(re.findall(r"\bsrc/(?:kernels|runners|trainers)/[\w./-]+", script_text)):
        source = (folder.parents[1] / place).resolve()
        inside = [path for path in counted if path.is_relative_to(source)]
        assert inside, f"an edit of {place} would not build {name} again"


@pytest.mark.parametrize("line", ["src/gone.c", "../outside", "/etc/hostname"])
def test_a_listed_source_that_is_not_there_is_named(lock_hash, tmp_path, line):
    write(tmp_path, {"envs/one/requirements.txt": "", "envs/one/sources.txt": f"{line}\n"})
    (tmp_path.parent / "outside").touch()
    with pytest.raises(BadInput, match=rf"one/sources.txt: '{line}': expected"):
        lock_hash("one")


@pytest.mark.env
def test_a_compiler_counts_where_it_is_called(lock_hash, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    build = 'mpicc -o "$1/bin/x" x.c'
    write(tmp_path / "envs", {"c/requirements.txt": "", "c/build.sh": build})
    write(tmp_path / "envs", {"d/requirements.txt": "", "d/build.sh": "true  # go over there"})

    def compiler(version: str) -> None:
        write(tools, {"cc": f"#!/bin/sh\necho cc {version}\necho more\n"})
        (tools / "cc").chmod(0o755)
        environments.program_version.cache_clear()

    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.delenv("CC", raising=False)
    compiler("12.2.0")
    c, d = lock_hash("c"), lock_hash("d")
    compiler("13.1.0")
    assert lock_hash("c") != c and lock_hash("d") == d
    environments.program_version.cache_clear()
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    assert lock_hash("c") not in (c, d)
    environments.program_version.cache_clear()


ERROR = "x.cc:7:3: fatal error: mpi.h: No such file or directory"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b" * 301], ["a", "b" * 300]),
        ([*"abcdefgh", ERROR, *"ij"], [*"abcdefgh", ERROR, *"ij"]),
        (["a", "b", "c", ERROR, *"12345", *["make"] * 30], ["b", "c", ERROR, *"1234", *["make"] * 15]),
        (["a", "b", ERROR, *map(str, range(17))], ["a", "b", ERROR, *map(str, range(17))]),
        (["a", "# 1: -Werror, 2 errors", *["b"] * 15], ["b"] * 15),
        (
            ["  error: subprocess-exited-with-error", *["-"] * 9, f"  {ERROR}", *["make"] * 30],
            ["-", "-", f"  {ERROR}", *["make"] * 4, *["make"] * 15],
        ),
    ],
)
def test_what_a_failed_build_said(lines, expected):
    assert build_environment.failure_excerpt("\n".join(lines)) == "\n".join(expected)


@pytest.mark.env
def test_a_failed_script_leaves_the_compilers_error(lock_hash, tmp_path):
    build = f"echo '{ERROR}'; for i in $(seq 40); do echo \"pip $i\"; done; exit 3\n"
    write(tmp_path / "envs/broken", {"requirements.txt": "", "build.sh": build})
    facts = build_environment.build("broken", tmp_path / "log")
    assert facts["status"] == "failed"
    assert "exit status 3" in facts["message"]
    assert ERROR in facts["message"]
    assert facts["message"].endswith("pip 40")
    assert not Path(facts["python"]).exists()


# As much of Horovod's source as envs/shared/horovod-compile.sh touches, with a version that no
# registry has. It compiles nothing.
SOURCE = {
    "setup.py": """
import os, setuptools, sys

says = os.environ.get
if "bdist_wheel" in sys.argv:
    assert says("HOROVOD_WITH_TENSORFLOW") == says("HOROVOD_WITHOUT_PYTORCH") == "1"
    if says("HOROVOD_GPU_OPERATIONS") == "NCCL":
        assert "NO_KERNELS" not in os.environ, "error: no kernels"
        assert os.path.exists(says("HOROVOD_NCCL_LIB") + "/libnccl.so")
        assert "CUDA_STANDARD 17" in open("horovod/common/ops/cuda/CMakeLists.txt").read()
setuptools.setup(
    name="horovod", version="0.28.1.post9", packages=["horovod", "horovod.tensorflow"]
)
""",
    "CMakeLists.txt": "enable_language(CUDA)\n",
    "cmake/Modules/FindPytorch.cmake": "(CUDA_HOME is not None)\n",
    "horovod/common/ops/cuda/CMakeLists.txt": "set(CMAKE_CUDA_STANDARD 11)\n",
    "horovod/__init__.py": "",
    "horovod/tensorflow/__init__.py": "mpi_built = gloo_built = lambda: True\n",
}


class Fake:
    """An environment whose Horovod is SOURCE; `again` runs its build script once more."""

    def __init__(self, folder: Path) -> None:
        write(folder / "horovod-0.28.1.post9", SOURCE)
        self.archive = folder / "found" / "horovod-0.28.1.post9.tar.gz"
        self.archive.parent.mkdir()
        with tarfile.open(self.archive, "w:gz") as stream:
            stream.add(folder / "horovod-0.28.1.post9", "horovod-0.28.1.post9")
        checksum = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        envs = folder / "envs"
        write(envs, {"fake/requirements.txt": "setuptools==80.10.2\n"})
        shutil.copy(ROOT / "envs" / "horovod-tensorflow" / "build.sh", envs / "fake")
        shutil.copytree(SHARED, envs / "shared")
        pin = f"horovod==0.28.1.post9 --hash=sha256:{checksum}\n"
        write(envs, {"shared/horovod.txt": pin})
        self.facts = build_environment.build("fake", folder / "log")
        assert self.facts["status"] == "ok", self.facts["message"]
        self.folder = Path(self.facts["python"]).parents[1]
        self.wheels = folder / "cache" / "wheels"
        self.script = envs / "fake" / "build.sh"

    def again(self) -> dict[str, object]:
        subprocess.run(["bash", str(self.script), str(self.folder)], check=True)
        facts: dict[str, object] = json.loads((self.folder / "transect-build.json").read_text())
        return facts


@pytest.fixture
def fake(lock_hash, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "found"))
    return Fake(tmp_path)


@pytest.mark.env
def test_a_compiled_wheel_is_kept_and_a_broken_one_is_made_again(fake, tmp_path):
    facts = fake.facts
    assert (facts["wheel_from"], facts["nccl"]) == ("compiler", False)
    assert facts["build_s"] >= facts["requirements_s"] + facts["script_s"]
    assert [path.name for path in fake.wheels.iterdir()] == [facts["wheel"]]
    # Without its source nothing could be built: this one is taken from the cache.
    fake.archive.rename(tmp_path / "away")
    assert fake.again()["wheel_from"] == "cache"
    (tmp_path / "away").rename(fake.archive)
    (wheel,) = (fake.wheels / facts["wheel"]).glob("*.whl")
    wheel.write_bytes(b"half a wheel")
    assert fake.again()["wheel_from"] == "compiler"
    assert fake.again()["wheel_from"] == "cache"


@pytest.mark.env
def test_nccl_is_used_where_all_of_it_is_there(fake, tmp_path, monkeypatch):
    cuda = tmp_path / "cuda"
    (packages,) = fake.folder.glob("lib/python*/site-packages")
    write(packages, {"torch/__init__.py": "class version: cuda = '13.0'\n"})
    write(packages / "nvidia" / "nccl", {"include/nccl.h": "", "lib/libnccl.so.2": ""})
    write(cuda, {"include/cuda_runtime.h": ""})
    nvcc = f"echo '#$ TOP={cuda}/bin/..' >&2; echo 'release 13.0, V13.0.88'\n"
    write(cuda / "bin", {"nvcc": "#!/bin/sh\n" + nvcc})
    (cuda / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{cuda / 'bin'}:{os.environ['PATH']}")
    # Half a toolkit is none.
    facts = fake.again()
    assert (facts["wheel"], facts["wheel_from"], facts["nccl"]) == (fake.facts["wheel"], "cache", False)
    write(cuda, {"lib64/libcudart_static.a": ""})
    with monkeypatch.context() as failing:
        failing.setenv("NO_KERNELS", "1")
        facts = fake.again()
        assert (facts["wheel"], facts["wheel_from"], facts["nccl"]) == (fake.facts["wheel"], "cache", False)
    facts = fake.again()
    assert (facts["wheel_from"], facts["nccl"]) == ("compiler", True)
    assert facts["wheel"] != fake.facts["wheel"]
    assert fake.again()["wheel_from"] == "cache"
    # torch for another CUDA.
    write(packages, {"torch/__init__.py": "class version: cuda = '12.8'\n"})
    assert fake.again()["nccl"] is False
