"""The command line of docs/runner-contract.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tensors import BadInput

_MODES = ("latency", "load", "cases", "train")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(message)


def _once(arguments: list[str]) -> None:
    names = [a.partition("=")[0] for a in arguments if a.startswith("--")]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"argument {name} is given {names.count(name)} times, expected once")


def parse_arguments(arguments: list[str], modes: tuple[str, ...]) -> argparse.Namespace:
    """Return the arguments of a runner with these modes. Raises BadInput."""
    parser = _Parser(allow_abbrev=False, add_help=False)
    parser.add_argument("--mode", choices=_MODES, default="latency")
    for name in (
        "model",
        "inputs",
        "outputs",
        "options",
        "library",
        "arrivals",
        "cases",
        "step",
        "order",
        "state",
        "checkpoint",
        "schedule",
    ):
        parser.add_argument(f"--{name}", type=_file)
    parser.add_argument("--profile")
    parser.add_argument("--provider", default="cpu")
    parser.add_argument("--warmup", type=_whole(0), default=20)
    parser.add_argument("--min-runs", type=_whole(1), default=100)
    parser.add_argument("--max-seconds", type=_seconds, default=1.0)
    parser.add_argument("--sessions", type=_whole(1), default=1)
    parser.add_argument("--skip", type=_whole(0), default=0)
    parser.add_argument("--batch", type=_whole(1))
    parser.add_argument("--until", type=_whole(0))
    parser.add_argument("--checkpoint-every", type=_whole(0), default=0)
    parser.add_argument("--accumulate", type=_whole(1), default=1)
    parser.add_argument("--seed", type=_whole(0), default=0)
    parser.add_argument("--record", type=_file, required=True)
    _once(arguments)
    given = parser.parse_args(arguments)
    needed = {
        "latency": ("model", "inputs", "outputs"),
        "load": ("model", "inputs", "outputs", "arrivals"),
        "cases": ("cases",),
        "train": ("step", "inputs", "batch", "order", "until", "checkpoint"),
    }[given.mode]
    if given.mode not in modes:
        raise BadInput(f"--mode {given.mode}: this runner has {', '.join(modes)}")
    for name in needed:
        if getattr(given, name) is None:
            raise BadInput(f"--mode {given.mode} needs --{name}")
    if given.model is not None and not given.model.is_file():
        raise BadInput(f"{given.model}: no such model file")
    return given


def _file(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected the name of a file, got ''")
    return Path(text)


def _whole(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        good = text.isascii() and text.isdigit() and len(text) <= 10
        if not good or not least <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got '{text}'")
        return int(text)

    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds >= 0, got '{text}'")
    return value


def named(arguments: list[str], name: str) -> str | None:
    """Return the value of an argument, however wrong the others are."""
    for index, text in enumerate(arguments):
        if text == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if text.startswith(f"{name}="):
            return text.partition("=")[2]
    return None
