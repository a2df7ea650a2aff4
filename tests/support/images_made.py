"""A small environment and its image, made by two builders at once, for tests of containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.launch.elf import this_machine

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Images:
    """A plug-in folder with `envs/tiny`, its cache, and what two builders said of `tiny@charliecloud`."""

    plugins: Path
    cache: Path
    facts: dict[str, Any]
    said: str

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
        said, _ = process.communicate(timeout=600)
        assert process.returncode == 0, said
        return json.loads(out.read_text()) | {"said": said}


def make_images(folder: Path) -> Images:
    """Make the image by two processes that begin at the same time."""
    source = folder / "plugins" / "envs" / "tiny"
    source.mkdir(parents=True)
    (source / "requirements.txt").write_text("")
    (source / "image.yaml").write_text("base: host\nprograms: [sh, env, cat, sleep]\n")
    images = Images(folder / "plugins", folder / "cache", {}, "")
    builders = [images.build("tiny@charliecloud", folder / f"stamp-{i}.json") for i in range(2)]
    said = "".join(builder.communicate(timeout=600)[0] for builder in builders)
    assert [builder.returncode for builder in builders] == [0, 0], said
    first, second = (json.loads((folder / f"stamp-{i}.json").read_text()) for i in range(2))
    assert first["image"] == second["image"] and first["status"] == second["status"]
    return Images(images.plugins, images.cache, first, said)


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
