"""The key with which identities are hashed: kept out of results, or they could be guessed one by one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from pathlib import Path

from transect.domain.errors import BadInput
from transect.text.normalise import normalise

SALT_VARIABLE = "TRANSECT_SALT_FILE"
_BYTES = 32
_ADDRESS = re.compile(r"[^\s<>\"',;]+@[^\s<>\"',;]+")


class Salt:
    """Hashes with one key of 64 bytes at most (BLAKE2b with a key, RFC 7693)."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @property
    def fingerprint(self) -> str:
        """Return a text that differs between two keys, and says nothing else about them."""
        return self._digest("fingerprint", "").hex()

    def identity(self, person: str) -> str:
        """Return 16 hexadecimal digits for a person: for the address where there is one."""
        return self._digest("person", _canonical(person)).hex()

    def ticket(self, identifier: str) -> str:
        """Return 16 hexadecimal digits for a ticket's id."""
        return self._digest("ticket", identifier).hex()

    def pseudonym(self, person: str) -> str:
        """Return a word of small letters that stands for a person: `person` and eight more."""
        number = int.from_bytes(self._digest("pseudonym", _canonical(person)))
        letters = []
        for _ in range(8):
            number, letter = divmod(number, 26)
            letters.append(chr(ord("a") + letter))
        return "person" + "".join(letters)

    def _digest(self, kind: str, value: str) -> bytes:
        text = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=8).digest()


def _canonical(person: str) -> str:
    found = _ADDRESS.search(person) if "@" in person else None
    text = found.group() if found else person
    return " ".join(normalise(text).casefold().split())


def salt_file() -> Path:
    """Return the path of the key: as the variable says, else among the user's settings."""
    given = os.environ.get(SALT_VARIABLE)
    if given:
        return Path(given)
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(settings) / "transect" / "salt"


def read_salt(path: Path) -> Salt:
    """Read the key, made at first use. Raises BadInput where it is open to others, or is none."""
    if not path.exists():
        _make(path)
    if path.exists() and not path.is_file():
        # To read from a pipe would be to wait for ever.
        raise BadInput(f"{path}: no plain file: expected a salt")
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: no readable salt: {error}") from None
    if mode & 0o077:
        raise BadInput(f"{path}: mode {mode:o}: expected a salt that only its owner can read: chmod 600 {path}")
    if not re.fullmatch(rf"[0-9a-f]{{{2 * _BYTES}}}", text):
        raise BadInput(f"{path}: expected a salt of {2 * _BYTES} hexadecimal digits, as it is made where there is none")
    return Salt(bytes.fromhex(text))


def _make(path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(_BYTES) + "\n")
        # Unlike a rename it leaves the key of another process that was first.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    except OSError as error:
        raise BadInput(
            f"{path}: a salt cannot be made there: {error.strerror}; name a file by {SALT_VARIABLE}"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def public_salt() -> Salt:
    """Return the key for tickets that come with the package: nobody is hidden, and machines agree."""
    return Salt(hashlib.sha256(b"transect: tickets that hold nobody").digest())
