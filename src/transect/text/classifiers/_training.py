"""Training a torch module step by step: early stopping, and a state to go on from bit for bit.

Nothing depends on how many epochs there will be, and all that is drawn in an epoch depends on the seed
and the epoch's number alone: so a run that goes on from a state ends as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput, MissingDependency
from transect.text.classifiers import STATE, Diverged, Fitted, Task
from transect.text.classifiers._options import TrainingOptions
from transect.text.classifiers._state import Progress, copy_weights, put_weights, read_state, write_state
from transect.text.classifiers._updates import Updates, make_updates

if TYPE_CHECKING:
    import torch

# Rows that are predicted at once.
_ROWS_AT_ONCE = 256
# Of so many batches the tickets are sorted by length before they are dealt out to them.
_POOLED = 16
# Writing states takes at most this share of the time.
_WRITING_SHARE = 0.05


@dataclass(slots=True)
class _Run:
    """The parts and state of one training."""

    module: torch.nn.Module
    updates: Updates
    task: Task
    options: TrainingOptions
    progress: Progress
    device: torch.device
    cuts: bool


def train(make: Callable[[], torch.nn.Module], task: Task, options: TrainingOptions, *, cuts: bool) -> Fitted:
    """Train what `make` makes, from word numbers (n, length) to logits; return its probabilities.

    `cuts`: columns of padding change nothing, so batches are as long as their longest ticket. The module is left in
    `make`'s hands as well: it holds the weights that were used. Raises BadInput where patience has no part to look at,
    MissingDependency without a GPU that is asked for, Diverged when a number is no longer finite.
    """
    import torch

    _check(task, options)
    if task.device == "cuda" and not torch.cuda.is_available():
        raise MissingDependency("the cell trains on a GPU, and torch finds none")
    torch.set_num_threads(task.threads)
    device = torch.device(task.device)
    module = make().to(device)
    run = _Run(module, make_updates(options, module), task, options, Progress(), device, cuts)
    if task.resume is not None:
        run.progress = read_state(task.resume / STATE, _identity(task, options), module, run.updates)
    _run_epochs(run)
    if run.progress.best is not None:
        put_weights(module, run.progress.best)
    module.eval()
    return Fitted(
        probabilities={part: predict(module, task.x[part], device, cuts) for part in task.predicted},
        history=run.progress.history,
        parameters=count_trained(module),
        # Without patience nobody looked for it.
        details={"ended": run.progress.ended, "best_epoch": run.progress.best_epoch or None},
    )


def _check(task: Task, options: TrainingOptions) -> None:
    if options.patience is not None and not len(task.x.get("validation", ())):
        raise BadInput("patience: ends training by the part `validation`, and that has no tickets")
    if not len(task.x["train"]):
        raise BadInput("the part `train` has no tickets")


def count_trained(module: torch.nn.Module) -> int:
    """Return how many numbers are trained."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def _identity(task: Task, options: TrainingOptions) -> dict[str, Any]:
    return {
        "options": options.model_dump(exclude={"epochs", "updates"}),
        "seed": task.seed,
        "classes": list(task.classes),
        "rows": {part: list(x.shape) for part, x in task.x.items()},
    }


def _run_epochs(run: _Run) -> None:
    """Train to the end; keep the state, of the last good epoch if it comes to that."""
    task = run.task
    path, identity = task.out / STATE, _identity(task, run.options)
    written, wait = time.monotonic(), task.keep_every_s
    good = _snapshot(run)
    while not _has_ended(run):
        try:
            _run_epoch(run)
        except Diverged:
            write_state(path, identity, *good)
            raise
        good = _snapshot(run)
        if time.monotonic() - written >= wait:
            begin = time.monotonic()
            write_state(path, identity, *good)
            written = time.monotonic()
            if task.keep_every_s:
                wait = max(task.keep_every_s, (written - begin) / _WRITING_SHARE)
    write_state(path, identity, *_snapshot(run))


def _snapshot(run: _Run) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], Progress]:
    return copy_weights(run.module), run.updates.state(), run.progress.copy()


def _has_ended(run: _Run) -> bool:
    progress, options = run.progress, run.options
    if progress.ended == "patience":
        return True
    if options.updates is not None:
        progress.ended = "updates" if progress.updates >= options.updates else ""
    else:
        assert options.epochs is not None
        if progress.epoch > options.epochs:
            raise BadInput(f"the state to go on from has {progress.epoch} epochs, and {options.epochs} are asked for")
        progress.ended = "epochs" if progress.epoch == options.epochs else ""
    return bool(progress.ended)


def _run_epoch(run: _Run) -> None:
    """Go once through the training part in a new order, or until there are enough updates."""
    import torch

    progress, options, task = run.progress, run.options, run.task
    begin = time.monotonic()
    drawn = np.random.default_rng([task.seed, progress.epoch])
    batches = _batches(task.x["train"], options.batch, drawn)
    # What dropout leaves out.
    torch.manual_seed(int(drawn.integers(2**62)))
    if options.updates is not None:
        batches = batches[: options.updates - progress.updates]
    run.module.train()
    total = torch.zeros((), device=run.device)
    for rows in batches:
        total += _step(run, rows)
    progress.epoch += 1
    progress.updates += len(batches)
    entry: dict[str, Any] = {"epoch": progress.epoch, "updates": progress.updates}
    entry["loss"] = float(total) / len(batches)
    finite = np.isfinite(entry["loss"]) and all(bool(torch.isfinite(p).all()) for p in run.module.parameters())
    if not finite:
        raise Diverged(f"loss or weights were no longer finite in epoch {progress.epoch}", progress.history)
    seconds = time.monotonic() - begin
    entry |= _validate(run)
    entry["seconds"] = seconds
    progress.history.append(entry)
    if options.patience is not None:
        _look_for_better(run, entry["validation_loss"])


def _batches(x: np.ndarray, size: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of each batch of an epoch: drawn, but for tickets of like length coming together.

    Whether or not batches are cut to their longest ticket: what is compared has the same batches.
    """
    order = generator.permutation(len(x))
    lengths = np.count_nonzero(x, axis=1)
    batches = []
    for start in range(0, len(order), size * _POOLED):
        pool = order[start : start + size * _POOLED]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    return [batches[place] for place in generator.permutation(len(batches))]


def _cut(x: np.ndarray) -> np.ndarray:
    """Leave out columns in which no row has a word, but for the first."""
    longest = int(np.count_nonzero(x, axis=1).max(initial=1))
    return x[:, :longest]


def _step(run: _Run, rows: np.ndarray) -> torch.Tensor:
    """Update by one batch; return its mean loss without waiting for the device."""
    import torch

    words = run.task.x["train"][rows]
    x = torch.from_numpy(_cut(words) if run.cuts else words).to(run.device, torch.int64)
    y = torch.from_numpy(run.task.y["train"][rows]).to(run.device)
    run.updates.zero()
    loss = torch.nn.functional.cross_entropy(run.module(x), y)
    loss.backward()
    if run.options.clip is not None:
        torch.nn.utils.clip_grad_norm_(run.module.parameters(), run.options.clip)
    run.updates.step()
    return loss.detach()


def _validate(run: _Run) -> dict[str, float | None]:
    """Return loss and accuracy on `validation`; None where it has no tickets."""
    x, y = run.task.x.get("validation"), run.task.y.get("validation")
    if x is None or y is None or not len(x):
        return {"validation_loss": None, "validation_accuracy": None}
    run.module.eval()
    probabilities = predict(run.module, x, run.device, run.cuts)
    right = probabilities[np.arange(len(y)), y]
    least = np.finfo(np.float32).tiny
    return {
        "validation_loss": float(-np.log(np.maximum(right, least)).mean()),
        "validation_accuracy": float((probabilities.argmax(axis=1) == y).mean()),
    }


def _look_for_better(run: _Run, loss: float) -> None:
    """Keep the weights of the best epoch; end when none came for as long as patience lasts."""
    progress = run.progress
    if progress.best is None or loss < progress.best_loss:
        progress.best, progress.best_loss = copy_weights(run.module), loss
        progress.best_epoch = progress.epoch
    elif progress.epoch - progress.best_epoch >= (run.options.patience or 0):
        progress.ended = "patience"


def predict(module: torch.nn.Module, x: np.ndarray, device: torch.device, cuts: bool) -> np.ndarray:
    """Return probabilities (n, classes) float32 of a module that is set to evaluate."""
    import torch

    order = np.argsort(np.count_nonzero(x, axis=1), kind="stable")
    parts = []
    with torch.inference_mode():
        for start in range(0, len(x), _ROWS_AT_ONCE):
            rows = x[order[start : start + _ROWS_AT_ONCE]]
            words = torch.from_numpy(_cut(rows) if cuts else rows).to(device, torch.int64)
            parts.append(module(words).softmax(dim=1).cpu().numpy())
    probabilities = np.concatenate(parts)
    back = np.empty_like(probabilities)
    back[order] = probabilities
    return back
