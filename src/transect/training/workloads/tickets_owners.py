"""The published ticket distributor's encoder without dropout, small and at its own size: it tells owners of tickets."""

from __future__ import annotations

from dataclasses import replace

from transect.training.encoder_model import TextEncoder
from transect.training.text_encoder import EncoderConfig
from transect.training.workloads import WORKLOADS, Parameters, Workload

# Layers, heads and all places side by side are the published ones; 20,000 words are the most that a study counts.
_PUBLISHED = replace(EncoderConfig.published(vocabulary=20_000), dropout=0.0)
_SMALL = replace(_PUBLISHED, vocabulary=1024, width=64, ffn=256, length=48, classes=24)


def _parameters(config: EncoderConfig, learning_rate: float, target: float) -> Parameters:
    return Parameters(
        batch=16,
        epochs=12,
        learning_rate=learning_rate,
        momentum=0.9,
        weight_decay=1e-4,
        quality_target=target,
        reference_steps=40,
        dataset_options={
            "corpus": "dialogues",
            "names": "kept",
            "split": "forty",
            "embeddings": "train",
            "words": "gaussian",
            "length": config.length,
            "vocabulary": config.vocabulary,
        },
    )


@WORKLOADS.register("tickets-owners")
class TicketsOwners(Workload):
    """A transformer encoder of two layers, width 64, one head, over 48 words, for 24 owners: 239,256 parameters.

    `dataset_options` name what the study's `tickets` has: generated dialogues, dealt out as published.
    """

    dataset = "tickets"
    model = TextEncoder(_SMALL)
    defaults = _parameters(_SMALL, learning_rate=0.004, target=0.5)


@WORKLOADS.register("tickets-owners-published")
class TicketsOwnersPublished(Workload):
    """The same at the published size: width 512, FFN 2048, over 280 words, for 144 owners."""

    dataset = "tickets"
    model = TextEncoder(_PUBLISHED)
    defaults = _parameters(_PUBLISHED, learning_rate=0.0005, target=0.3)
