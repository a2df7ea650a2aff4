"""Hugging Face's Trainer. Nothing of transect: `epoch_line` of the study reads the lines that a callback prints."""

import argparse
import time

import digits
import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64, help="of each rank")
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()


class Digits(nn.Module):
    """A small net as the Trainer calls one."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Rows(torch.utils.data.Dataset):
    """Images and their classes."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, at: int):
        return {"x": self.x[at], "labels": self.y[at]}


class Print(TrainerCallback):
    """Prints a line after each test, with the seconds of training so far."""

    seconds = 0.0

    def on_epoch_begin(self, *_, **__) -> None:
        self.began = time.perf_counter()

    def on_epoch_end(self, *_, **__) -> None:
        self.seconds += time.perf_counter() - self.began

    def on_evaluate(self, args, state, control, metrics, **_) -> None:
        if state.is_world_process_zero:
            told = f"loss={metrics['eval_loss']:.6f} accuracy={metrics['eval_accuracy']:.6f}"
            print(f"epoch {state.epoch:.0f} {told} seconds={self.seconds:.6f}")


def accuracy(predicted) -> dict[str, float]:
    """Return what the Trainer reports as eval_accuracy."""
    return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}


x, y, x_test, y_test = digits.load(given.seed)
arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=given.epochs,
    per_device_train_batch_size=given.batch,
    per_device_eval_batch_size=60,
    learning_rate=0.01,
    seed=given.seed,
    use_cpu=not torch.cuda.is_available(),
    eval_strategy="epoch",
    save_strategy="no",
    logging_strategy="no",
    report_to=[],
    disable_tqdm=True,
    dataloader_drop_last=True,
)
trainer = Trainer(
    model=Digits(),
    args=arguments,
    train_dataset=Rows(x, y),
    eval_dataset=Rows(x_test, y_test),
    compute_metrics=accuracy,
    callbacks=[Print()],
)
trainer.train()
