"""The loop of a worker: calls come as lines of JSON, `[name, arguments]`, and each gets a line back."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any


def answer_calls(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Answer until standard input ends; what the functions print goes to standard error."""
    replies, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"found": functions[name](*arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        print(json.dumps(answer), file=replies, flush=True)
