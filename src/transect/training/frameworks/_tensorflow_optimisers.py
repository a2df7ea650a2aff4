"""The update rules in TensorFlow's own kernels, called from within compiled functions."""

from __future__ import annotations

from typing import Any

from transect.training.frameworks._rules import Arithmetic, rule_of
from transect.training.optimisers import group_rule
from transect.training.workloads import Parameters


def make_optimiser(tf: Any, rule: Parameters, trained: list[Any], dtype: Any) -> Any:
    """Return an object with `apply(gradients, rate)` and `resume(states, updates)`, which takes arrays
    like `trained` for each state of the rule. Raises KeyError for an unknown rule.
    """
    makers: dict[str, Any] = {"sgd": _Sgd, "nesterov": _Sgd, "adam": _Adam, "adamw": _Adam, "adagrad": _Adagrad}
    makers |= {"rmsprop": _InTensors, "lamb": _InTensors}
    return makers[rule.optimiser](tf, rule, trained, dtype)


def _states(tf: Any, trained: list[Any]) -> list[Any]:
    return [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in trained]


def _assign(variables: list[Any], arrays: list[Any]) -> None:
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


def _decayed(rule: Parameters, weight: Any, gradient: Any) -> Any:
    """Return the gradient with the weight's decay as a part."""
    decay = group_rule(rule, weight.shape).weight_decay
    return gradient + decay * weight if decay else gradient


def _counted(tf: Any, step: Any) -> Any:
    """Count an update, and return its number as float64.

    By the variable's handle: under tf.distribute each rank counts for itself.
    """
    tf.raw_ops.AssignAddVariableOp(resource=step.handle, value=tf.constant(1, tf.int64))
    return tf.cast(tf.raw_ops.ReadVariableOp(resource=step.handle, dtype=tf.int64), tf.float64)


class _Sgd:
    """Plain, with momentum, or with Nesterov's; the kernels keep v free of the learning rate."""

    def __init__(self, tf: Any, rule: Parameters, trained: list[Any], dtype: Any) -> None:
        self._tf, self._rule, self._trained, self._dtype = tf, rule, trained, dtype
        self._velocities = _states(tf, trained if rule.momentum else [])

    def apply(self, gradients: list[Any], rate: Any) -> None:
        raw, rule = self._tf.raw_ops, self._rule
        for index, (weight, gradient) in enumerate(zip(self._trained, gradients, strict=True)):
            gradient = _decayed(rule, weight, gradient)
            if rule.momentum:
                raw.ResourceApplyMomentum(
                    var=weight.handle,
                    accum=self._velocities[index].handle,
                    lr=rate,
                    grad=gradient,
                    momentum=self._tf.constant(rule.momentum, self._dtype),
                    use_nesterov=rule.optimiser == "nesterov",
                )
            else:
                raw.ResourceApplyGradientDescent(var=weight.handle, alpha=rate, delta=gradient)

    def resume(self, states: list[list[Any]], updates: int) -> None:
        if self._rule.momentum:
            _assign(self._velocities, states[0])


class _Adam:
    """The kernel adds epsilon to sqrt(v), before the correction of its bias: it gets a corrected one."""

    def __init__(self, tf: Any, rule: Parameters, trained: list[Any], dtype: Any) -> None:
        self._tf, self._rule, self._trained, self._dtype = tf, rule, trained, dtype
        self._first, self._second = _states(tf, trained), _states(tf, trained)
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)

    def apply(self, gradients: list[Any], rate: Any) -> None:
        tf, rule = self._tf, self._rule
        raw, dtype = tf.raw_ops, self._dtype
        step = _counted(tf, self._step)
        # In float64, of the betas that the kernel has: its 1 - 0.999 in float32 is wrong in the fifth
        # digit, which cancels only where the correction of the bias is wrong by as much.
        betas = [float(dtype.type(beta)) for beta in (rule.beta1, rule.beta2)]
        powers = [tf.pow(tf.constant(beta, tf.float64), step) for beta in betas]
        root = tf.sqrt(1 - powers[1])
        corrected = tf.cast(tf.cast(rate, tf.float64) * root / (1 - powers[0]), dtype)
        epsilon = tf.cast(rule.epsilon * root, dtype)
        zero = tf.constant(0, dtype)
        for index, (weight, gradient) in enumerate(zip(self._trained, gradients, strict=True)):
            if rule.optimiser == "adam":
                gradient = _decayed(rule, weight, gradient)
            elif decay := group_rule(rule, weight.shape).weight_decay:
                raw.ResourceApplyGradientDescent(var=weight.handle, alpha=rate * decay, delta=weight.read_value())
            # Powers of 0: the learning rate is corrected already.
            raw.ResourceApplyAdam(
                var=weight.handle,
                m=self._first[index].handle,
                v=self._second[index].handle,
                beta1_power=zero,
                beta2_power=zero,
                lr=corrected,
                beta1=tf.constant(rule.beta1, dtype),
                beta2=tf.constant(rule.beta2, dtype),
                epsilon=epsilon,
                grad=gradient,
            )

    def resume(self, states: list[list[Any]], updates: int) -> None:
        _assign(self._first, states[0])
        _assign(self._second, states[1])
        self._step.assign(updates)


class _Adagrad:
    """The second version of the kernel, which adds epsilon to the root as the rule does."""

    def __init__(self, tf: Any, rule: Parameters, trained: list[Any], dtype: Any) -> None:
        self._tf, self._rule, self._trained, self._dtype = tf, rule, trained, dtype
        self._sums = _states(tf, trained)

    def apply(self, gradients: list[Any], rate: Any) -> None:
        tf = self._tf
        for weight, total, gradient in zip(self._trained, self._sums, gradients, strict=True):
            tf.raw_ops.ResourceApplyAdagradV2(
                var=weight.handle,
                accum=total.handle,
                lr=rate,
                epsilon=tf.constant(self._rule.epsilon, self._dtype),
                grad=_decayed(self._rule, weight, gradient),
            )

    def resume(self, states: list[list[Any]], updates: int) -> None:
        _assign(self._sums, states[0])


class _InTensors:
    """Rules that no kernel computes: that of RMSprop takes the root of the average plus epsilon."""

    def __init__(self, tf: Any, rule: Parameters, trained: list[Any], dtype: Any) -> None:
        self._tf, self._rule, self._trained, self._dtype = tf, rule, trained, dtype
        self._arithmetic = Arithmetic(root=tf.sqrt, ratio=self._ratio)
        keeps, _ = rule_of(rule, self._arithmetic)
        self._kept = [_states(tf, trained) for _ in range(keeps)]
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)

    def _ratio(self, w: Any, along: Any) -> Any:
        size, length = self._tf.norm(w), self._tf.norm(along)
        return self._tf.where((size > 0) & (length > 0), size / length, self._tf.ones_like(size))

    def apply(self, gradients: list[Any], rate: Any) -> None:
        tf, rule = self._tf, self._rule
        raw, dtype = tf.raw_ops, self._dtype
        step = _counted(tf, self._step)
        corrections = [tf.cast(1 - tf.pow(tf.constant(b, tf.float64), step), dtype) for b in (rule.beta1, rule.beta2)]
        for index, (weight, gradient) in enumerate(zip(self._trained, gradients, strict=True)):
            _, changed = rule_of(group_rule(rule, weight.shape), self._arithmetic)
            kept = [variables[index] for variables in self._kept]
            read = [raw.ReadVariableOp(resource=variable.handle, dtype=dtype) for variable in kept]
            value, states = changed(weight.read_value(), gradient, read, rate, corrections)
            for variable, new in zip((weight, *kept), (value, *states), strict=True):
                raw.AssignVariableOp(resource=variable.handle, value=new)

    def resume(self, states: list[list[Any]], updates: int) -> None:
        for variables, arrays in zip(self._kept, states, strict=False):
            _assign(variables, arrays)
        self._step.assign(updates)
