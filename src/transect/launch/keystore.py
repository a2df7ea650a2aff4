"""The key-value store that Horovod's gloo controller meets at: `keystore.py ADDRESS PORT`.

A script of the standard library, Python 3.8 or later. PUT and GET /SCOPE/KEY; values stay in
memory. DELETE only says that a rank has met all others, so it is acknowledged and keeps the keys.
"""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    timeout = 600
    values: dict[str, bytes] = {}  # noqa: RUF012 shared on purpose: one process is one store
    lock = threading.Lock()

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        with self.lock:
            value = self.values.get(self.path)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        value = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            self.values[self.path] = value
        self._answer(200)

    def do_DELETE(self) -> None:
        self._answer(200)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    # All ranks come at once.
    request_queue_size = 4096


def serve(address: str, port: int) -> None:
    """Serve until the process is ended. Raises OSError when the port is taken."""
    _Server((address, port), _Handler).serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
