"""The rules of aggregations in plain Python, as their papers have them: lists and loops, nothing of transect."""

from __future__ import annotations

from math import sqrt
from statistics import median
from typing import NamedTuple

Vector = list[float]


class Round(NamedTuple):
    """What clients sent in a round."""

    vectors: list[Vector]
    counts: list[int]
    staleness: list[int]


def weighted(vectors: list[Vector], weights: list[float], divisor: float) -> Vector:
    return [sum(w * v[i] for v, w in zip(vectors, weights, strict=True)) / divisor for i in range(len(vectors[0]))]


def mean(one: Round) -> Vector:
    return weighted(one.vectors, one.counts, sum(one.counts))


def plain_mean(vectors: list[Vector]) -> Vector:
    return weighted(vectors, [1] * len(vectors), len(vectors))


def plus(model: Vector, change: Vector, rate: float = 1.0) -> Vector:
    return [w + rate * d for w, d in zip(model, change, strict=True)]


def squared(one: Vector, other: Vector) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def fedavg(rounds, model, server_rate):
    for one in rounds:
        model = plus(model, mean(one), server_rate)
    return model


def fedavgm(rounds, model, server_rate, momentum):
    velocity = [0.0] * len(model)
    for one in rounds:
        velocity = plus([momentum * v for v in velocity], mean(one))
        model = plus(model, velocity, server_rate)
    return model


def adaptive(second):
    def rule(rounds, model, server_rate, beta_1, tau, beta_2=0.0):
        m, v = [0.0] * len(model), [tau**2] * len(model)
        for one in rounds:
            delta = mean(one)
            for i, d in enumerate(delta):
                m[i] = beta_1 * m[i] + (1 - beta_1) * d
                v[i] = second(v[i], d, beta_2)
            model = [w + server_rate * m[i] / (sqrt(v[i]) + tau) for i, w in enumerate(model)]
        return model

    return rule


def yogi(v: float, d: float, beta: float) -> float:
    sign = (v > d * d) - (v < d * d)
    return v - (1 - beta) * d * d * sign


def fedbuff(rounds, model, server_rate, power):
    for one in rounds:
        shares = [round(65536 / (1 + t) ** power) / 65536 for t in one.staleness]
        model = plus(model, weighted(one.vectors, shares, len(one.vectors)), server_rate)
    return model


def fedasync(rounds, model, mixing, lateness, power, slope, late):
    def share(t: int) -> float:
        if lateness == "constant":
            return 1.0
        if lateness == "polynomial":
            return 1 / (1 + t) ** power
        return 1.0 if t <= late else 1 / (slope * (t - late) + 1)

    for one in rounds:
        shares = [round(65536 * share(t)) / 65536 for t in one.staleness]
        model = plus(model, weighted(one.vectors, shares, len(one.vectors)), mixing)
    return model


def stateless(change):
    def rule(rounds, model, **settings):
        for one in rounds:
            model = plus(model, change(one, **settings))
        return model

    return rule


def medians(one):
    return [median(column) for column in zip(*one.vectors, strict=True)]


def trimmed(one, attackers):
    columns = [sorted(column) for column in zip(*one.vectors, strict=True)]
    return [sum(c[attackers : len(c) - attackers]) / (len(c) - 2 * attackers) for c in columns]


def krum_scores(vectors, attackers):
    scores = []
    for i, vector in enumerate(vectors):
        away = sorted(squared(vector, other) for j, other in enumerate(vectors) if j != i)
        scores.append(sum(away[: max(1, len(vectors) - attackers - 2)]))
    return scores


def krum(one, attackers):
    scores = krum_scores(one.vectors, attackers)
    return one.vectors[scores.index(min(scores))]


def multi_krum(one, attackers, kept):
    scores = krum_scores(one.vectors, attackers)
    best = sorted(range(len(scores)), key=lambda i: (scores[i], i))
    return plain_mean([one.vectors[i] for i in best[: kept or len(scores) - attackers]])


def bulyan(one, attackers):
    left, chosen = list(one.vectors), []
    while len(chosen) < len(one.vectors) - 2 * attackers:
        scores = krum_scores(left, attackers)
        chosen.append(left.pop(scores.index(min(scores))))
    result = []
    for column in zip(*chosen, strict=True):
        middle = median(column)
        nearest = sorted(column, key=lambda x: (abs(x - middle), x))[: len(chosen) - 2 * attackers]
        result.append(sum(nearest) / len(nearest))
    return result


def geometric_median(one, smoothing, iterations, tolerance):
    point = mean(one)
    for _ in range(iterations):
        weights = [n / max(smoothing, sqrt(squared(v, point))) for v, n in zip(one.vectors, one.counts, strict=True)]
        before, point = point, weighted(one.vectors, weights, sum(weights))
        if sqrt(squared(before, point)) <= tolerance:
            break
    return point


def centred_clipping(rounds, model, radius, iterations):
    centre = [0.0] * len(model)
    for one in rounds:
        for _ in range(iterations):
            moved = [0.0] * len(model)
            for vector in one.vectors:
                away = [a - b for a, b in zip(vector, centre, strict=True)]
                far = sqrt(sum(a * a for a in away))
                moved = plus(moved, away, (min(1.0, radius / far) if far else 1.0) / len(one.vectors))
            centre = plus(centre, moved)
        model = plus(model, centre)
    return model


# By the names of the registry: from rounds, a model and settings to the last model.
RULES = {
    "fedavg": fedavg,
    "fedavgm": fedavgm,
    "fedadagrad": adaptive(lambda v, d, beta: v + d * d),
    "fedadam": adaptive(lambda v, d, beta: beta * v + (1 - beta) * d * d),
    "fedyogi": adaptive(yogi),
    "fedbuff": fedbuff,
    "fedasync": fedasync,
    "median": stateless(medians),
    "trimmed-mean": stateless(trimmed),
    "krum": stateless(krum),
    "multi-krum": stateless(multi_krum),
    "bulyan": stateless(bulyan),
    "geometric-median": stateless(geometric_median),
    "centred-clipping": centred_clipping,
}
