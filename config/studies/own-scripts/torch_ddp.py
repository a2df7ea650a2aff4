"""A plain loop of PyTorch, alone or under DistributedDataParallel: `torchrun torch_ddp.py` works as well."""

import argparse
import os
import time

import digits
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from transect import log_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64, help="of each rank")
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()

torch.manual_seed(given.seed)
ranks = int(os.environ.get("WORLD_SIZE", "1"))
x, y, x_test, y_test = map(torch.from_numpy, digits.load(given.seed))
model: nn.Module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
data, sampler = TensorDataset(x, y), None
if ranks > 1:
    dist.init_process_group("gloo")
    model, sampler = nn.parallel.DistributedDataParallel(model), DistributedSampler(data, seed=given.seed)
loader = DataLoader(data, batch_size=given.batch, sampler=sampler, shuffle=sampler is None, drop_last=True)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
seconds = 0.0
for epoch in range(1, given.epochs + 1):
    if sampler is not None:
        sampler.set_epoch(epoch)
    began, losses = time.perf_counter(), []
    for batch, target in loader:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    seconds += time.perf_counter() - began
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    samples = len(loader) * given.batch * ranks
    log_epoch(epoch=epoch, metric=accuracy, loss=sum(losses) / len(losses), seconds=seconds, samples=samples)
if ranks > 1:
    dist.destroy_process_group()
