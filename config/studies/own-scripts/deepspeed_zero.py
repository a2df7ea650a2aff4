"""DeepSpeed's engine with ZeRO stage 1: `deepspeed deepspeed_zero.py` works as well."""

import argparse
import os
import time

import deepspeed
import digits
import torch
from torch import nn

from transect import log_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64, help="of each rank")
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()

torch.manual_seed(given.seed)
x, y, x_test, y_test = map(torch.from_numpy, digits.load(given.seed))
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
if not torch.cuda.is_available():
    # Its own all-reduce for CPUs would be compiled here, in a minute and gigabytes; gloo's serves as well.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo", auto_mpi_discovery=False)
ranks = int(os.environ["WORLD_SIZE"])
engine, _, loader, _ = deepspeed.initialize(
    model=net,
    optimizer=torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
    training_data=torch.utils.data.TensorDataset(x, y),
    config={
        "train_micro_batch_size_per_gpu": given.batch,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
        "dataloader_drop_last": True,
    },
)
seconds = 0.0
for epoch in range(1, given.epochs + 1):
    began, losses = time.perf_counter(), []
    for batch, target in loader:
        loss = nn.functional.cross_entropy(engine(batch.to(engine.device)), target.to(engine.device))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    seconds += time.perf_counter() - began
    with torch.no_grad():
        right = engine(x_test.to(engine.device)).argmax(1).cpu() == y_test
    log_epoch(
        epoch=epoch,
        metric=right.float().mean().item(),
        loss=sum(losses) / len(losses),
        seconds=seconds,
        samples=len(losses) * given.batch * ranks,
    )
torch.distributed.destroy_process_group()
