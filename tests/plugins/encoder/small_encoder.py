"""A workload for tests: an encoder so small that all stages together take seconds."""

from __future__ import annotations

from transect.training.encoder_model import TextEncoder
from transect.training.text_encoder import EncoderConfig
from transect.training.workloads import WORKLOADS, Parameters, Workload


@WORKLOADS.register("test-encoder")
class SmallEncoder(Workload):
    """One layer of width 8 over the first 12 words."""

    dataset = "tickets"
    model = TextEncoder(EncoderConfig(vocabulary=64, width=8, heads=2, layers=1, ffn=16, length=12, classes=8))
    defaults = Parameters(
        batch=16,
        epochs=2,
        learning_rate=0.05,
        momentum=0.9,
        quality_target=0.1,
        dataset_options={"corpus": "sample", "split": "half", "embeddings": "words", "length": 12, "vocabulary": 64},
    )
