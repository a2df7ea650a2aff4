"""torchtitan's Llama, optimisers and schedule, in a loop of one's own.

Its `Trainer` runs on GPUs only: it calls `torch.cuda.set_device` first. These parts of it run on a CPU too. An image is a
text of 16 words, sums of 2 x 2 pixels, whose next word is its class.
"""

import argparse
import time

import digits
import numpy as np
import torch
from torch import nn
from torchtitan.components.lr_scheduler import build_lr_schedulers
from torchtitan.components.optimizer import build_optimizers
from torchtitan.config import JobConfig
from torchtitan.distributed import ParallelDims
from torchtitan.models.llama3 import Transformer, TransformerModelArgs

from transect import log_epoch

WORDS = 65
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()


def texts(x: np.ndarray) -> torch.Tensor:
    """Return images (n, 64) as words (n, 16) of 0 to 64."""
    sums = (x * 16).reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4))
    return torch.from_numpy(sums.reshape(-1, 16).astype(np.int64))


torch.manual_seed(given.seed)
x, y, x_test, y_test = digits.load(given.seed)
train, test = texts(x), texts(x_test)
classes, classes_test = torch.from_numpy(y), torch.from_numpy(y_test)
size = {"dim": 64, "n_layers": 2, "n_heads": 4, "multiple_of": 32}
model = Transformer(TransformerModelArgs(vocab_size=WORDS + 10, max_seq_len=16, **size))
with torch.no_grad():
    model.init_weights()
config = JobConfig()
config.optimizer.lr, config.optimizer.implementation = 1e-2, "foreach"
config.lr_scheduler.warmup_steps = 10
steps = len(classes) // given.batch
parallel = ParallelDims(dp_replicate=1, dp_shard=1, cp=1, tp=1, pp=1, ep=1, etp=1, world_size=1)
optimisers = build_optimizers([model], config.optimizer, parallel)
schedule = build_lr_schedulers(optimisers, config.lr_scheduler, steps * given.epochs)
seconds = 0.0
for epoch in range(1, given.epochs + 1):
    began, losses = time.perf_counter(), []
    for picked in torch.randperm(len(classes))[: steps * given.batch].split(given.batch):
        optimisers.zero_grad()
        loss = nn.functional.cross_entropy(model(train[picked])[:, -1], classes[picked] + WORDS)
        loss.backward()
        optimisers.step()
        schedule.step()
        losses.append(loss.item())
    seconds += time.perf_counter() - began
    with torch.no_grad():
        right = model(test)[:, -1].argmax(1) == classes_test + WORDS
    log_epoch(
        epoch=epoch,
        metric=right.float().mean().item(),
        loss=sum(losses) / len(losses),
        seconds=seconds,
        samples=steps * given.batch,
    )
