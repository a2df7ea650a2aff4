"""A loop of PyTorch under Hugging Face's Accelerate: `accelerate launch accelerate_loop.py` works as well."""

import argparse
import time

import digits
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from transect import log_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64, help="of each rank")
parser.add_argument("--precision", default="no")
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()

torch.manual_seed(given.seed)
accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=given.precision)
x, y, x_test, y_test = map(torch.from_numpy, digits.load(given.seed))
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
model, optimiser, loader = accelerator.prepare(
    net,
    torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
    DataLoader(TensorDataset(x, y), batch_size=given.batch, shuffle=True, drop_last=True),
)
seconds = 0.0
for epoch in range(1, given.epochs + 1):
    began, losses = time.perf_counter(), []
    for batch, target in loader:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        accelerator.backward(loss)
        optimiser.step()
        losses.append(loss.item())
    seconds += time.perf_counter() - began
    with torch.no_grad():
        right = model(x_test.to(accelerator.device)).argmax(1).cpu() == y_test
    log_epoch(
        epoch=epoch,
        metric=right.float().mean().item(),
        loss=sum(losses) / len(losses),
        seconds=seconds,
        samples=len(losses) * given.batch * accelerator.num_processes,
    )
accelerator.end_training()
