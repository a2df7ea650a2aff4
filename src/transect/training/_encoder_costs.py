"""Operations of the transformer encoder of `text_encoder`, as `operations` says what counts as one.

Every place of a text counts, padding too: rows of a batch are as long as one another.

- Attention's factor 1/sqrt(size) is one of the weights before it. A softmax takes an exponential, its
  part of the sum and a quotient for each score (3); backwards y (g - sum of g y) (4).
- A layer norm takes one pass for sum and sum of squares (3), and (x - mean) scale weight + bias (4), as
  its scale is of the place and its weight of the column. Backwards: two sums for its weight and bias
  (3); its input's, from g weight (1), two sums of that (3) and three terms (4).
- Looking a word up costs nothing; backwards each number is added to its row.
"""

from __future__ import annotations

from transect.training.losses import LOSSES
from transect.training.operations import Operations
from transect.training.text_encoder import EncoderConfig


def encoder_operations(config: EncoderConfig, loss: str) -> tuple[int, int]:
    """Return the operations of one sample: of its prediction, and of a step of training on it."""
    tuned = config.embedding == "tuned"
    first, others = _layer(config, tuned), _layer(config, True)
    parts = [_ends(config, tuned), first, *[others] * (config.layers - 1)]
    prediction = sum(part.prediction for part in parts)
    training = sum(part.forward + part.weights + part.inputs for part in parts)
    return prediction, training + LOSSES.get(loss).operations(config.classes)


def _layer(config: EncoderConfig, needed: bool) -> Operations:
    """Count one layer; `needed`: whether anybody needs the gradient of its input."""
    length, width = config.length, config.width
    numbers, scores = length * width, config.heads * length * length
    maps = ((width, 3 * width), (width, width), (width, config.ffn), (config.ffn, width))
    products = sum(2 * length * inputs * outputs for inputs, outputs in maps)
    biases = sum(length * outputs for _, outputs in maps)
    attention = 2 * (2 * length * length * width)
    rectified = length * config.ffn
    forward = products + attention + 3 * scores + rectified + 2 * numbers + 2 * 7 * numbers
    # The gradients of in_proj's input and of the sum around attention end in the layer's input.
    of_input = 2 * length * width * 3 * width + numbers
    inputs = products + 2 * attention + 4 * scores + rectified + 2 * numbers + 2 * 8 * numbers
    return Operations(
        prediction=forward,
        forward=forward,
        weights=products + biases + 2 * 3 * numbers,
        inputs=inputs if needed else inputs - of_input,
    )


def _ends(config: EncoderConfig, tuned: bool) -> Operations:
    numbers = config.length * config.width
    head = 2 * config.pooled * config.classes
    mean = config.pooling == "mean"
    forward = config.positions * numbers + mean * (numbers + config.width) + head
    return Operations(
        prediction=forward,
        forward=forward,
        weights=head + config.classes + tuned * numbers,
        inputs=head + mean * config.width,
    )
