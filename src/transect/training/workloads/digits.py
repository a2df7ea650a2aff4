"""Networks on handwritten digits: small, and made for what weighs most in them."""

from __future__ import annotations

from transect.training.layers import Conv2d, Flatten, Linear, MaxPool2d, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_bottleneck, resnet_preactivated


class _Digits(Workload):
    dataset = "digits"
    sample = (1, 8, 8)


@WORKLOADS.register("digits-cnn")
class DigitsCnn(_Digits):
    """Two 3 x 3 convolutions with pooling and one linear layer: 6,090 parameters."""

    layers = (
        Conv2d(1, 16, 3, padding=1),
        ReLU(),
        MaxPool2d(2),
        Conv2d(16, 32, 3, padding=1),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(32 * 2 * 2, 10),
    )
    defaults = Parameters(batch=64, epochs=10, learning_rate=0.02, momentum=0.9, quality_target=0.95)


@WORKLOADS.register("digits-deep-cnn")
class DigitsDeepCnn(_Digits):
    """48 convolutions of 16 channels with rectifiers: 119,450 parameters.

    Made for training past the memory: in single precision each sample leaves 0.2 MB of activations,
    all weights take 0.5 MB, and eight times the batch still leaves each layer a sixth of it all.
    """

    layers = (
        Conv2d(1, 16, 3, padding=1),
        ReLU(),
        *(Conv2d(16, 16, 3, padding=1), ReLU()) * 47,
        Flatten(),
        Linear(16 * 64, 10),
    )
    defaults = Parameters(batch=64, epochs=1, learning_rate=0.005, momentum=0.9, quality_target=0.5, reference_steps=2)


@WORKLOADS.register("digits-logistic")
class DigitsLogistic(_Digits):
    """Logistic regression over ten classes: 650 parameters, a convex loss, so that every framework ends at one minimum."""

    layers = (Flatten(), Linear(64, 10))
    defaults = Parameters(batch=64, epochs=30, learning_rate=0.05, momentum=0.9, quality_target=0.93)


@WORKLOADS.register("digits-mlp")
class DigitsMlp(_Digits):
    """64-512-512-10 with rectifiers: 301,066 parameters, 1.2 MB of gradient in each step.

    Made for studies of the network: what it communicates weighs more than what it computes.
    """

    layers = (Flatten(), Linear(64, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10))
    defaults = Parameters(batch=64, epochs=4, learning_rate=0.05, momentum=0.9, quality_target=0.9)


@WORKLOADS.register("digits-resnet50")
class DigitsResnet50(_Digits):
    """ResNet-50 v1.5 on digits of 32 x 32 pixels, each pixel 4 x 4 times: 23,522,250 parameters.

    Its stem is the published one, which quarters an image: the first stage sees 8 x 8 places, as many as a digit has
    pixels. The stem for small images, which quarters nothing, would take 16 times the operations to see no more.
    """

    sample = (1, 32, 32)
    layers = resnet_bottleneck(50, 10, 1)
    defaults = Parameters(
        batch=32,
        epochs=4,
        learning_rate=0.0003,
        optimiser="adamw",
        quality_target=0.9,
        reference_steps=2,
        dataset_options={"enlarge": 4},
    )


@WORKLOADS.register("digits-resnet1001")
class DigitsResnet1001(_Digits):
    """ResNet-1001 with pre-activation, as published for 32 x 32 pixels, on 8 x 8: 10 million parameters."""

    layers = resnet_preactivated(111, 1, 10)
    defaults = Parameters(
        batch=16, epochs=1, learning_rate=0.01, momentum=0.9, weight_decay=1e-4, quality_target=0.5, reference_steps=2
    )


@WORKLOADS.register("digits-wide-mlp")
class DigitsWideMlp(_Digits):
    """64, six times 1024, 10 with rectifiers: 5,324,810 parameters, 21 MB of gradient in each step.

    Made for pipelines: between two layers pass 4 kB for each sample, 0.3 MB for a batch.
    """

    layers = (Flatten(), Linear(64, 1024), ReLU(), *(Linear(1024, 1024), ReLU()) * 5, Linear(1024, 10))
    defaults = Parameters(batch=64, epochs=2, learning_rate=0.05, momentum=0.9, quality_target=0.9, reference_steps=20)
