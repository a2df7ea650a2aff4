"""One file over HTTP: it goes on where it was cut off, and gets its name when its checksum holds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
from requests.auth import AuthBase

from transect import __version__
from transect.domain.errors import BadInput
from transect.domain.files import free_bytes, write_atomic
from transect.engine.fetch.definition import safe_address

# Less than a piece is lost where a connection is cut.
_PIECE = 1 << 16
# To connect, and between two pieces.
_TIMEOUTS_S = (30, 60)
# Without a single byte in between.
_ATTEMPTS = 5
PAUSE_S = 2.0
_LONGEST_PAUSE_S = 60.0
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_STOPPED = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)

Told = Callable[[int, int | None], None]


class Gone(BadInput):
    """The publisher has a file no more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What a file must be; None is not known."""

    bytes: int | None = None
    md5: str | None = None
    sha256: str | None = None
    # Whose word the checksum is.
    whose: str = "its publisher"


@dataclass(frozen=True, kw_only=True, slots=True)
class Got:
    """What a file is."""

    bytes: int
    sha256: str


def check_file(path: Path, expected: Expected, named: str) -> Got:
    """Hold a file to what is expected. Raises BadInput naming both; the file stays."""
    size = path.stat().st_size
    if expected.bytes not in (None, size):
        raise BadInput(f"{named}: has {size} bytes, expected {expected.bytes} as {expected.whose} says")
    hashes = {"sha256": hashlib.sha256()} | ({"md5": hashlib.md5(usedforsecurity=False)} if expected.md5 else {})
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            for one in hashes.values():
                one.update(piece)
    for kind, wanted in (("md5", expected.md5), ("sha256", expected.sha256)):
        if wanted is not None and (found := hashes[kind].hexdigest()) != wanted:
            raise BadInput(f"{named}: its {kind} is {found}, expected {wanted} as {expected.whose} says")
    return Got(bytes=size, sha256=hashes["sha256"].hexdigest())


class _Partial:
    """What came of a file, and of which version: one that the publisher changed meanwhile begins anew."""

    def __init__(self, target: Path, url: str) -> None:
        self.path = target.with_name(f"{target.name}.part")
        self._facts, self._url = target.with_name(f"{target.name}.part.json"), url

    def begun(self) -> tuple[int, str, int | None]:
        """Return how many bytes are there, what If-Range asks for, and the size of all; 0 for those of an unknown version."""
        try:
            facts = json.loads(self._facts.read_text(encoding="utf-8"))
            if facts["url"] == self._url and facts["validator"]:
                return self.path.stat().st_size, str(facts["validator"]), facts["total"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, "", None

    def begin(self, validator: str, total: int | None) -> None:
        """Forget what came, and note the version of what comes now."""
        self.path.write_bytes(b"")
        write_atomic(self._facts, json.dumps({"url": self._url, "validator": validator, "total": total}))

    def drop(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)
        self._facts.unlink(missing_ok=True)

    def finish(self, target: Path) -> None:
        """Give it its name."""
        with self.path.open("rb") as stream:
            os.fsync(stream.fileno())
        self.path.replace(target)
        self._facts.unlink(missing_ok=True)


def download(
    session: requests.Session, url: str, auth: AuthBase, target: Path, expected: Expected, told: Told = lambda *_: None
) -> Got:
    """Fetch `url` into `target`, which appears when it is whole and its checksum holds.

    A cut connection is taken up where it ended, at once and in a later call. Raises BadInput where the server refuses, the
    file is another one than expected, or there is no room; nothing of an answer's or a token's text is in the message.
    """
    partial, failures, last = _Partial(target, url), 0, -1
    while True:
        try:
            pause = _attempt(session, url, auth, partial, expected, told)
        except requests.RequestException as error:
            # Its text has the address to which the publisher led, which may be signed.
            if not isinstance(error, _STOPPED) or isinstance(error, requests.exceptions.SSLError):
                raise BadInput(
                    f"{target.name}: cannot be fetched from {urlsplit(url).hostname}: {type(error).__name__}"
                ) from None
            pause, why = PAUSE_S, type(error).__name__
        else:
            if pause is None:
                break
            why = "the server is busy"
        size = partial.path.stat().st_size if partial.path.exists() else 0
        # Counted from the most that ever came: one that begins anew each time would never end.
        failures, last = (failures + 1, last) if size <= last else (1, size)
        if failures >= _ATTEMPTS:
            raise BadInput(
                f"{target.name}: {urlsplit(url).hostname} gave no more after {size} bytes ({why}, {failures} times): run the same "
                "again later, it goes on from there"
            )
        time.sleep(min(pause, _LONGEST_PAUSE_S))
    try:
        got = check_file(partial.path, expected, target.name)
    except BadInput as error:
        partial.drop()
        raise BadInput(f"{error}; what came was removed") from None
    partial.finish(target)
    return got


def _attempt(
    session: requests.Session, url: str, auth: AuthBase, partial: _Partial, expected: Expected, told: Told
) -> float | None:
    """Take what comes; return None at the file's end, or in how many seconds to ask again."""
    begun, validator, whole = partial.begun()
    if begun and begun == whole:
        return None  # it was killed before its checksum was looked at
    headers = {"Accept-Encoding": "identity", "User-Agent": f"transect/{__version__}"}
    if begun:
        headers |= {"Range": f"bytes={begun}-", "If-Range": validator}
    safe = {"response": _stays_safe}
    with session.get(url, headers=headers, auth=auth, stream=True, timeout=_TIMEOUTS_S, hooks=safe) as answer:
        name = partial.path.name.removesuffix(".part")
        if answer.status_code in _LATER:
            given = answer.headers.get("Retry-After", "")
            return float(given) if given.isdecimal() else PAUSE_S
        if answer.status_code == 416:
            partial.drop()  # it has another size now, or was whole: it begins anew
            return 0.0
        _refuse(answer.status_code, name, url)
        total = _announced(answer)
        if answer.status_code == 206:
            said = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if said is None or int(said[1]) != begun or _version(answer.headers) not in ("", validator):
                partial.drop()
                return 0.0
        else:
            begun = 0
            partial.begin(_version(answer.headers), total)
        if total is not None and expected.bytes not in (None, total):
            partial.drop()
            raise BadInput(f"{name}: has {total} bytes, expected {expected.bytes} as {expected.whose} says")
        if total is None and expected == Expected() and answer.headers.get("Transfer-Encoding") != "chunked":
            partial.drop()
            host = urlsplit(url).hostname
            raise BadInput(
                f"{name}: {host} says no size and no checksum of it is known: whether it comes whole cannot be told"
            )
        needed = (total or expected.bytes or 0) - begun
        if needed > (free := free_bytes(partial.path.parent)):
            raise BadInput(f"{partial.path.parent}: has {free} bytes free, expected {needed} for the rest of {name}")
        # The file as it is: some servers name an archive's own compression as the answer's, which would be taken off.
        answer.raw.headers.discard("Content-Encoding")
        with partial.path.open("ab") as stream:
            for piece in answer.iter_content(_PIECE):
                stream.write(piece)
                begun += len(piece)
                told(begun, total)
                if expected.bytes is not None and begun > expected.bytes:
                    partial.drop()
                    raise BadInput(f"{name}: has more than the {expected.bytes} bytes that {expected.whose} says")
    return None if total is None or begun == total else PAUSE_S


def _stays_safe(answer: requests.Response, **_: object) -> None:
    """Raise BadInput for an answer that leads to where anybody between could change the file."""
    if answer.is_redirect:
        try:
            safe_address(urljoin(answer.url, answer.headers["Location"]))
        except ValueError:
            raise BadInput(
                f"{urlsplit(answer.url).hostname}: leads to an address that does not begin with https://"
            ) from None


def _version(headers: Mapping[str, str]) -> str:
    """Return what tells this version of a file from another: a weak tag does not (RFC 9110, 13.1.5)."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _announced(answer: requests.Response) -> int | None:
    """Return the size of the whole file as the server says it, None where it does not."""
    said = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if answer.status_code == 206 and said is not None:
        return int(said[2]) if said[2] != "*" else None
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _refuse(status: int, name: str, url: str) -> None:
    host = urlsplit(url).hostname
    if status in (401, 403):
        raise BadInput(
            f"{name}: {host} refuses it ({status}): the token is missing, wrong or out of date, the set's terms are not yet "
            "accepted with that account on its page, or there is no such file"
        )
    if status in (404, 410):
        raise Gone(f"{name}: {host} has it no more ({status}): {url}")
    if status not in (200, 206):
        raise BadInput(f"{name}: {host} answers with status {status}, expected 200")
