"""Lightning's Trainer, with a callback of five lines that tells of each epoch."""

import argparse
import os
import time

import digits
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from transect import log_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64, help="of each rank")
parser.add_argument("--precision", default="32-true")
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
ranks = int(os.environ.get("WORLD_SIZE", "1"))


class Digits(lightning.LightningModule):
    """A small net, its loss and its accuracy."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        right = (self.net(batch[0]).argmax(1) == batch[1]).float().mean()
        self.log("accuracy", right, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


class Tell(lightning.Callback):
    """Times each epoch without its test."""

    seconds = 0.0

    def on_train_epoch_start(self, *_) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, *_) -> None:
        self.ended = time.perf_counter()

    def on_train_epoch_end(self, trainer, _) -> None:
        self.seconds += self.ended - self.began
        told = {name: trainer.callback_metrics[name].item() for name in ("loss", "accuracy")}
        samples = trainer.num_training_batches * given.batch * ranks
        log_epoch(
            epoch=trainer.current_epoch + 1,
            metric=told["accuracy"],
            loss=told["loss"],
            seconds=self.seconds,
            samples=samples,
        )


if __name__ == "__main__":
    lightning.seed_everything(given.seed)
    x, y, x_test, y_test = map(torch.from_numpy, digits.load(given.seed))
    trainer = lightning.Trainer(
        max_epochs=given.epochs,
        accelerator="cpu",
        devices=ranks,
        strategy="ddp" if ranks > 1 else "auto",
        precision=given.precision,
        callbacks=[Tell()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        Digits(),
        DataLoader(TensorDataset(x, y), batch_size=given.batch, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(x_test, y_test), batch_size=len(y_test)),
    )
