"""Why a module cannot be exported: the part of it, the operator and the line of its source."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from transect.domain.errors import BadInput

if TYPE_CHECKING:
    import torch

OURS = str(Path(__file__).resolve().parent)
# What calls the module, the loss and the metrics.
STEP = str(Path(__file__).with_name("modules.py").resolve())
# Packages of which no line is the user's.
EXPORTERS = ("torch", "onnx", "onnx_ir", "onnxscript")
# Operators as torch writes them: `aten::zeta`, `aten.zeta.default`, `derivative for 'zeta'`, and
# those of other libraries: `op='torchvision.roi_align'`.
OPERATOR = re.compile(r"(?:aten|prims)(?:::|\.)(\w+)|derivative for '(\w+)'|op='\w+\.(\w+)'")
# Colours of a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class NoGradient(Exception):
    """The loss does not depend, or not differentiably, on parameters: their names."""


class OperatorError(Exception):
    """An operator of the graph that no step can have: its name and why."""


@dataclass(slots=True)
class Places:
    """Where in the module the forward pass is. `stack`: the parts that it is inside of."""

    names: Mapping[int, str]
    stack: list[torch.nn.Module] = field(default_factory=list)

    def here(self) -> str:
        """Name the innermost part."""
        if not self.stack:
            return ""
        part = self.stack[-1]
        return f"{self.names.get(id(part)) or 'the module'} ({type(part).__name__})"


@contextmanager
def following(module: torch.nn.Module) -> Iterator[Places]:
    """Follow the forward pass through the module's parts."""
    from torch.nn.modules import module as hooks

    places = Places({id(part): name for name, part in module.named_modules()})
    entered = hooks.register_module_forward_pre_hook(lambda part, _: places.stack.append(part))

    def leave(*_: Any) -> None:
        places.stack.pop()

    left = hooks.register_module_forward_hook(leave)
    try:
        yield places
    finally:
        entered.remove()
        left.remove()


def explained(error: Exception, places: Places) -> BadInput:
    """Turn what tracing or export raised into one error."""
    reason = _reason(error)
    if isinstance(error, NoGradient):
        return BadInput(
            f"{error.args[0]}: the loss has no gradient by this parameter, as behind an argmax. Expected one, or "
            "requires_grad_(False)"
        )
    line = _line(traceback.extract_tb(error.__traceback__))
    if where := ", ".join(part for part in (places.here(), line) if part):
        return BadInput(f"{where}: {reason}")
    if isinstance(error, BadInput):
        return error
    found = OPERATOR.search(_chain(error))
    operator = next(filter(None, found.groups())) if found else ""
    return BadInput(f"module: {operator + ': ' if operator else ''}{reason}")


def _reason(error: Exception) -> str:
    if "No ONNX function found" in _chain(error):
        return "the operator cannot be exported: there is no translation into ONNX for it"
    if type(error).__name__ in ("GuardOnDataDependentSymNode", "DataDependentOutputException"):
        return (
            "what it does depends on the values of a tensor; expected the same operators for all: `torch.where` in "
            "place of `if`, a tensor in place of `.item()` or `float`"
        )
    if "mutating a non-functional tensor" in str(error):
        return "it writes into a tensor that is no buffer of the module; expected register_buffer"
    # The exporter's own words are advice to its developers: its cause says what it met.
    while "\x1b" in str(error) and error.__cause__ is not None:
        error = error.__cause__  # type: ignore[assignment]
    return ESCAPES.sub("", str(error)).strip().split("\n")[0] or type(error).__name__


def _chain(error: BaseException) -> str:
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    return "\n".join(reversed(texts))


def _is_theirs(file: str) -> bool:
    import torch

    library = str(Path(linecache.__file__).parent)
    packages = Path(torch.__file__).parents[1]
    if file.startswith(library) and "site-packages" not in file:
        return False
    return not file.startswith((*(f"{packages / name}/" for name in EXPORTERS), OURS, "<"))


def _line(frames: traceback.StackSummary) -> str:
    below = [i for i, frame in enumerate(frames) if frame.filename.startswith(OURS)]
    for frame in reversed(frames[below[0] if below else 0 :]):
        if _is_theirs(frame.filename):
            return f"{frame.filename}:{frame.lineno} `{frame.line}`"
    return ""


def source_line(frame: FrameType | None) -> str:
    """Return the innermost line of the user's source, from a running frame up to ours."""
    while frame is not None and frame.f_code.co_filename != STEP:
        file = frame.f_code.co_filename
        if _is_theirs(file):
            text = linecache.getline(file, frame.f_lineno).strip()
            return f"{file}:{frame.f_lineno} `{text}`"
        frame = frame.f_back
    return ""
