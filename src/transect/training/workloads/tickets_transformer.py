"""A small transformer encoder that tells the queue of a ticket."""

from __future__ import annotations

from transect.training.encoder_model import TextEncoder
from transect.training.text_encoder import EncoderConfig
from transect.training.workloads import WORKLOADS, Parameters, Workload

_LENGTH, _VOCABULARY = 48, 4096


@WORKLOADS.register("tickets-transformer")
class TicketsTransformer(Workload):
    """A transformer encoder of two layers, width 64, four heads, over 48 words: 329,608 parameters.

    `dataset_options` name what the study's `tickets` has: here the sample, dealt out at random.
    """

    dataset = "tickets"
    model = TextEncoder(
        EncoderConfig(vocabulary=_VOCABULARY, width=64, heads=4, layers=2, ffn=128, length=_LENGTH, classes=8)
    )
    defaults = Parameters(
        batch=16,
        epochs=10,
        learning_rate=0.05,
        momentum=0.9,
        quality_target=0.4,
        reference_steps=50,
        dataset_options={
            "corpus": "sample",
            "split": "random",
            "embeddings": "words",
            "words": "quantile",
            "length": _LENGTH,
            "vocabulary": _VOCABULARY,
        },
    )
