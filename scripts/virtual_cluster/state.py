"""Where a cluster keeps its files, and which clusters there are."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput, NotPossible
from .options import Node, Options
from .processes import Process

# A Unix socket's path has 107 bytes; the longest here is "/run/munge.sock.lock".
MAX_PATH = 85


def root() -> Path:
    """Return the folder of all clusters of this user."""
    if given := os.environ.get("TRANSECT_CLUSTERS"):
        return Path(given).absolute()
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108
    return Path(base).absolute() / "transect-clusters"


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of one cluster."""

    path: Path

    @classmethod
    def of(cls, name: str) -> Folder:
        """Return the folder of a cluster by name; raises BadInput."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name):
            raise BadInput(f"--name {name!r}: expected 1 to 32 of a-z, 0-9 and '-', not beginning with '-'")
        path = root() / name
        if len(os.fsencode(path)) > MAX_PATH:
            raise BadInput(
                f"the state folder {path} has {len(os.fsencode(path))} bytes, and Unix sockets in it"
                f" allow {MAX_PATH}; set TRANSECT_CLUSTERS to a shorter folder"
            )
        return cls(path)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.path.name

    @property
    def world_file(self) -> Path:
        """Tells the first process of the cluster's world."""
        return self.path / "world.json"

    @property
    def ready(self) -> Path:
        """Exists once the cluster was up."""
        return self.path / "ready"

    @property
    def failed(self) -> Path:
        """Holds the reason when the cluster did not come up."""
        return self.path / "failed"

    @property
    def etc(self) -> Path:
        """Seen as /etc/slurm inside."""
        return self.path / "etc"

    @property
    def run(self) -> Path:
        """Sockets and process numbers."""
        return self.path / "run"

    @property
    def log(self) -> Path:
        """What the daemons say."""
        return self.path / "log"

    @property
    def host_proc(self) -> Path:
        """Inside: the /proc of whoever started the cluster."""
        return self.path / "proc"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return self.run / "munge.sock"

    def network_namespace(self, node: Node) -> Path:
        """Inside: the file that keeps and names a node's network namespace."""
        return self.path / "netns" / node.name

    def device(self, node: Node, gpu: int) -> Path:
        """Return the character device that stands for a GPU."""
        return self.path / "dev" / f"{node.name}-gpu{gpu}"

    def node_file(self, node: Node) -> Path:
        """Tells the first process of a node."""
        return self.run / f"node-{node.name}.json"

    def spool(self, node: Node) -> Path:
        """Where a node's slurmd keeps its files; also its TmpFS."""
        return self.path / "spool" / node.name

    def make(self, options: Options) -> None:
        """Create the folders and write down what was asked for."""
        for name in ("etc", "run", "log", "proc", "netns", "dev", "spool", "state", "hold"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        # munged refuses a key or a socket under a folder that others may write.
        self.path.chmod(0o755)
        self.save(options)

    def save(self, options: Options) -> None:
        """Write down what the cluster is."""
        temporary = self.path / "options.new"
        temporary.write_text(json.dumps(options.as_json(), indent=1))
        temporary.rename(self.path / "options.json")

    def options(self) -> Options | None:
        """Return what the cluster is; None when there is none, or of an other version's."""
        try:
            return Options.from_json(json.loads((self.path / "options.json").read_text()))
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            return None

    def world(self) -> Process | None:
        """Return the first process of the world; None when there is none."""
        return Process.load(self.world_file)

    def node_init(self, node: Node) -> Process | None:
        """Return the first process of a node; None when it was never started."""
        return Process.load(self.node_file(node))


def clusters() -> list[Folder]:
    """Return the folders of all clusters, up or broken."""
    if not root().is_dir():
        return []
    return [Folder(path) for path in sorted(root().iterdir()) if (path / "options.json").is_file()]


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Let one command at a time start or end clusters; the lock needs no file of its own."""
    while True:
        root().mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(root(), os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # another command just ended the last cluster
        try:
            if (owner := os.fstat(descriptor).st_uid) != os.geteuid():
                raise NotPossible(
                    f"{root()} belongs to user {owner}, and this is user {os.geteuid()};"
                    " set TRANSECT_CLUSTERS to a folder of your own"
                )
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _same(descriptor, root()):
                continue
            yield
            return
        finally:
            os.close(descriptor)


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
