"""What this user accepted and fetched before: first checksums where the publisher gives none, and licences.

`$XDG_CONFIG_HOME/transect/fetched/NAME.json`, beside the user's salt: no token and no path of a data set is in it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.engine.fetch.definition import DataFile, Licence
from transect.engine.fetch.download import Expected, Got


class Known:
    """Read at the start, and again before it is written: the same set may be fetched into two folders at once."""

    def __init__(self, name: str) -> None:
        settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        self.path = Path(settings) / "transect" / "fetched" / f"{name}.json"
        self._content = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return {kind: dict(content[kind]) for kind in ("licences", "files")}
        except FileNotFoundError:
            return {"licences": {}, "files": {}}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f"{self.path}: cannot be read: {error}: mend it, or remove it to trust first fetches anew"
            ) from None

    def accepted(self, licence: Licence) -> bool:
        """Whether this licence was accepted, with these words."""
        return licence.digest in self._content["licences"]

    def accept(self, licence: Licence) -> None:
        """Note it, with the time."""
        self._content["licences"][licence.digest] = {"name": licence.name, "accepted": _now()}
        self.save()

    def expected(self, address: str, file: DataFile | None = None) -> Expected:
        """Return what the publisher says of a file, else what came at the first fetch."""
        if file is not None and (file.md5 or file.sha256):
            return Expected(bytes=file.bytes, md5=file.md5, sha256=file.sha256)
        first = self._content["files"].get(address)
        if first is None:
            return Expected(bytes=file.bytes if file else None)
        return Expected(sha256=first["sha256"], whose=f"the first fetch, of {first['fetched']} in {self.path},")

    def note(self, address: str, got: Got) -> None:
        """Keep a first checksum; `save` writes it."""
        self._content["files"].setdefault(address, {"bytes": got.bytes, "sha256": got.sha256, "fetched": _now()})

    def save(self) -> None:
        """Write it all. What another one kept first stays."""
        for kind, known in self._read().items():
            self._content[kind] |= known
        write_atomic(self.path, json.dumps(self._content, indent=1, sort_keys=True) + "\n")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
