"""`scripts/train-page`: assemble the page's folder, then serve it on this machine."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from transect.domain.errors import FAULTS, MissingDependency, say_fault
from transect.engine.build_environment import build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What the page loads of onnxruntime-web: WebAssembly alone.
ORT = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


def _python(name: str, folder: Path) -> str:
    facts = build(name, folder / "environments" / f"{name}.log")
    if facts["status"] != "ok":
        raise MissingDependency(f"environment {name}: {facts['message']}")
    return str(facts["python"])


def _run(python: str, script: str, folder: Path) -> None:
    command = [python, str(HERE / script), str(folder)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")})


def assemble(folder: Path, step: Path | None) -> None:
    """Write all that the page loads below `folder`; `step` is one that is there already."""
    logs = ROOT / "build"
    shutil.copytree(ROOT / "docs" / "train-in-the-browser", folder, dirs_exist_ok=True)
    shutil.copy2(HERE / "portable_step.mjs", folder)
    browser = Path(_python("runner-browser", logs)).parents[1]
    (folder / "ort").mkdir(exist_ok=True)
    for name in ORT:
        package = browser / "runners" / "node_modules" / "onnxruntime-web" / "dist"
        shutil.copy2(package / name, folder / "ort" / name)
    if step is not None:
        shutil.copytree(step, folder / "step", dirs_exist_ok=True)
    else:
        shutil.rmtree(folder / "step", ignore_errors=True)
        _run(_python("torch", logs), "digits_step.py", folder / "step")
    _run(_python("base", logs), "digits_data.py", folder / "data")


class _Handler(SimpleHTTPRequestHandler):
    """Serves files with the headers that isolate a page: a clock of 5 us instead of 100."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def end_headers(self) -> None:
        """Add the headers."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing of requests."""


def serve(folder: Path, port: int) -> None:
    """Serve the folder to this machine alone, until interrupted."""
    with ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=folder)) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="train-page", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "train-page")
    parser.add_argument("--port", type=int, default=0, help="default: one that is free")
    parser.add_argument("--step", type=Path, help="folder of a portable step of digits")
    parser.add_argument("--no-serve", action="store_true", help="only write the folder")
    given = parser.parse_args()
    try:
        given.folder.mkdir(parents=True, exist_ok=True)
        assemble(given.folder, given.step)
        if not given.no_serve:
            serve(given.folder, given.port)
    except KeyboardInterrupt:
        return 130
    except FAULTS as error:
        return say_fault(error, given.folder)
    return 0
