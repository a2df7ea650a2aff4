"""ONNX Runtime in a browser: WebAssembly, or WebGPU where there is one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime, missing_tool
from transect.runtimes.javascript import node_files

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_CHOICE = "TRANSECT_CHROMIUM"
# What a page loads of the package to compute without WebGPU.
_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


@RUNTIMES.register("browser", "web", "wasm")
class BrowserRuntime(CompiledRuntime):
    """The package onnxruntime-web in headless Chromium: WebAssembly with SIMD and threads; WebGPU."""

    environment = "runner-browser"
    program = "transect-runner-browser"
    trains = True
    providers = ("cpu", "webgpu")

    def supports(self, cell: InferCell) -> str | None:
        """Need Chromium; whether it has WebGPU only it can tell."""
        chosen = os.environ.get(_CHOICE)
        if chosen and shutil.which(chosen) is None:
            return f"{_CHOICE} is {chosen}, expected a program"
        how = f"install Chromium, or let {_CHOICE} name it"
        missing = None if chosen else missing_tool(*_CHROMIUM, how=how)
        return super().supports(cell) or missing

    def tools(self) -> list[str]:
        """Chromium runs the page, and its version is part of what is measured."""
        found = next((name for name in _CHROMIUM if shutil.which(name)), _CHROMIUM[0])
        return [os.environ.get(_CHOICE) or found]

    def library(self, python: str) -> Path | None:
        """None: the package brings its own build of ONNX Runtime."""
        return None

    def files(self, python: str) -> list[Path]:
        """Return what a page loads to compute with WebAssembly."""
        dist = node_files(python, "onnxruntime-web/dist")[1]
        return [dist / name for name in _FILES]
