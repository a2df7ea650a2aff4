"""A publisher of files on loopback, as well or as badly behaved as a test says."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Published:
    """One file, and how it is given."""

    content: bytes = b""
    # In turn, before it is given: status codes.
    refusals: list[int] = field(default_factory=list)
    # In turn: after how many bytes of an answer the connection is cut.
    cuts: list[int] = field(default_factory=list)
    # A header that must come along, else 401.
    needs: tuple[str, str] | None = None
    # Where to go instead.
    elsewhere: str = ""
    ranges: bool = True
    tag: str | None = ""
    # After that many bytes it waits for `released`, having set `waits`.
    stalls_after: int | None = None
    # It says no length.
    unsized: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        return f'"{hashlib.sha256(self.content).hexdigest()[:12]}"' if self.tag == "" else self.tag


class Publisher:
    def __init__(self) -> None:
        self.files: dict[str, Published] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.waits, self.released = threading.Event(), threading.Event()
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, name: str, content: bytes, **how: object) -> str:
        self.files[f"/{name}"] = Published(content, **how)  # type: ignore[arg-type]
        return f"{self.address}/{name}"

    def ranges(self, name: str) -> list[str | None]:
        """What was asked of a file, request by request."""
        return [headers.get("range") for path, headers in self.asked if path == f"/{name}"]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {key.lower(): value for key, value in handler.headers.items()}
        self.asked.append((handler.path, headers))
        file = self.files.get(handler.path)
        if file is None:
            return self._status(handler, 404)
        if file.elsewhere:
            return self._status(handler, 302, Location=file.elsewhere)
        if file.refusals:
            return self._status(handler, file.refusals.pop(0), **{"Retry-After": "0"})
        if file.needs and headers.get(file.needs[0].lower()) != file.needs[1]:
            return self._status(handler, 401)
        begin = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
        if wanted and file.ranges and headers.get("if-range") in (None, file.version):
            begin = int(wanted[1])
            if begin >= len(file.content):
                return self._status(handler, 416)
        whole, part = len(file.content), file.content[begin:]
        handler.send_response(206 if begin else 200)
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
        if not file.unsized:
            handler.send_header("Content-Length", str(len(part)))
        if file.version is not None:
            handler.send_header("ETag", file.version)
        for name, value in file.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if file.stalls_after is not None:
            handler.wfile.write(part[: file.stalls_after])
            handler.wfile.flush()
            part, file.stalls_after = part[file.stalls_after :], None
            self.waits.set()
            self.released.wait(120)
        if file.cuts:
            part = part[: file.cuts.pop(0)]
        with suppress(OSError):
            handler.wfile.write(part)
        handler.close_connection = True
        return None

    def _status(self, handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@contextmanager
def publishing() -> Iterator[Publisher]:
    publisher = Publisher()
    thread = threading.Thread(target=publisher.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield publisher
    finally:
        publisher.released.set()
        publisher.server.shutdown()
        publisher.server.server_close()
