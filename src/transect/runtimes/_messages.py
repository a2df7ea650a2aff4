"""What ONNX Runtime said, without what differs from one language, folder or build to the next."""

from __future__ import annotations

import re

# What languages and interfaces put before the message itself.
_BEFORE = re.compile(r"^.*?(?:\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : |ERROR_CODE: \d+, ERROR_MESSAGE: )", re.DOTALL)
_MODEL = re.compile(r"^\S+\.onnx: ")
_LOADING = re.compile(r"^.*?Load model from \S+ failed: ?", re.DOTALL)
# The place in its sources: file, line, and the function with its types.
_PLACE = re.compile(
    r"/\S+\.(?:cc|cpp|cu|h):\d+ [^(]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?:::<lambda\([^)]*\)>)?"
    r"(?: \[with [^\]]*\])? ?"
)
# An invalid node is written out with all its types before the message tells what is wrong with it.
_NODE = re.compile(r"In Node, .*?, Error ")


def said(message: str) -> str:
    """Return the message's own words, on one line.

    >>> said("Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from /a/b.onnx failed:no such operator")
    'no such operator'
    """
    text = _BEFORE.sub("", " ".join(message.split()))
    text = _LOADING.sub("", _MODEL.sub("", text))
    return _NODE.sub("", _PLACE.sub("", text)).strip() or "no reason was given"
