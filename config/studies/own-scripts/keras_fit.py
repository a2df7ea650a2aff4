"""Keras' fit, with a callback that tells of each epoch; KERAS_BACKEND says on what it computes."""

import argparse
import time

import digits
import keras

from transect import log_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()


class Tell(keras.callbacks.Callback):
    """Times each epoch without its test."""

    seconds = 0.0
    batches = 0

    def on_epoch_begin(self, epoch, logs=None) -> None:
        self.began, self.batches = time.perf_counter(), 0

    def on_train_batch_end(self, batch, logs=None) -> None:
        self.ended, self.batches = time.perf_counter(), self.batches + 1

    def on_epoch_end(self, epoch, logs) -> None:
        self.seconds += self.ended - self.began
        log_epoch(
            epoch=epoch + 1,
            metric=logs["val_accuracy"],
            loss=logs["loss"],
            seconds=self.seconds,
            samples=self.batches * given.batch,
        )


keras.utils.set_random_seed(given.seed)
x, y, x_test, y_test = digits.load(given.seed)
whole = len(y) // given.batch * given.batch
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile(
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(
    x[:whole],
    y[:whole],
    batch_size=given.batch,
    epochs=given.epochs,
    validation_data=(x_test, y_test),
    callbacks=[Tell()],
    verbose=0,
)
