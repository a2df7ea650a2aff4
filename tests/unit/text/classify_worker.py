"""Workers of classify and search, in the environment of torch: a line of JSON each way.

One process for many cells, for torch takes seconds to start.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from transect.payloads import classify as classify_payload
from transect.payloads.__main__ import main
from transect.text.classifiers import _training
from worker_calls import answer_calls


def classify(arguments: list[str]) -> int:
    return main(arguments)


def search(arguments: list[str]) -> int:
    return main(arguments)


def killed(arguments: list[str], states: int) -> int:
    """Run, keeping the state after each epoch, in a process that is killed while it writes its n-th state; return how it ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    write, left = _training.write_state, [states]

    def last(*given: Any) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        write(*given)

    _training.write_state = last
    classify_payload.KEEP_EVERY_S = 0
    main(arguments)
    os._exit(0)


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def outputs(model: str, x: list[list[int]]) -> list[list[float]]:
    """Return what ONNX Runtime makes of word numbers."""
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"x": np.array(x, np.int64)})[0].tolist()


if __name__ == "__main__":
    answer_calls(globals())
