"""The handwritten digits of the UCI repository, as scikit-learn has them: 1797 images of 8 x 8 pixels."""

import numpy as np

FILE = "own-scripts/digits.csv.gz"
TEST = 360


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return x (n, 64) float32 in 0..1 and y (n,) int64 of training, and both of the test set."""
    rows = np.loadtxt(FILE, delimiter=",")[np.random.default_rng(seed).permutation(1797)]
    x, y = (rows[:, :64] / 16).astype(np.float32), rows[:, 64].astype(np.int64)
    return x[TEST:], y[TEST:], x[:TEST], y[:TEST]
