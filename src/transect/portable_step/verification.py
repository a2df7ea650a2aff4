"""Compares the exported graphs with PyTorch before anything is written, to find unforeseen errors.

The user's own module, loss and optimiser run eagerly, for the example's lengths and for longer ones,
for one of them twice: what is remembered outside of the state shows in the second run. What is tolerated
follows from the module itself: how far its results move when each operator rounds once more (`eager.rounding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput
from transect.portable_step.distances import distance, is_finite, say_farthest
from transect.portable_step.eager import Arrays, Eager, Movement, movement, unit_of
from transect.portable_step.manifest import Checked, Data, Manifest

if TYPE_CHECKING:
    import torch

# Beyond what rounding each result once moves. Wrong operators are off by far more than rounding,
# and sums of a million terms by less.
SLACK = 256.0
# How much farther a result may be off than PyTorch's own jump with `SLACK` times the rounding.
BEYOND = 2.0
# So many roundings a float32 shows each time; one it often takes back.
FEW = 4.0
# A rate at which an update is no smaller than the weights, so that they show the gradient, a small one
# too; in float16 it would overflow. And an epsilon with which AdamW divides by no rounding error.
RATE, SHORT_RATE, EPSILON = 2.0**40, 1024.0, 1.0
# A result whose error may be a larger share of it is not compared, so to say.
VAGUE = 0.25
SEED = 7
WAY_OUT = "Replace what it does beside the layers and functions that docs/portable-training-step.md lists"


def verify(
    eager: Eager,
    manifest: Manifest,
    files: Mapping[str, bytes],
    values: Mapping[str, np.ndarray],
    example: Sequence[torch.Tensor],
) -> Checked:
    """Compare the files with PyTorch; raises BadInput where they compute something else."""
    try:
        import onnxruntime
    except Exception as error:
        # One that is installed may still miss a library of the system.
        why = f"nothing was compared: onnxruntime cannot be imported: {_first_line(error)}"
        return Checked(runtime=None, lengths={}, unchecked=why)
    name = f"onnxruntime {onnxruntime.__version__}"
    check = _Check(
        eager=eager,
        manifest=manifest,
        values=dict(values),
        runtime=name,
        sessions={k: _session(name, g.file, files[g.file]) for k, g in manifest.graphs.items()},
    )
    varying = {
        axis: length
        for entry, tensor in zip(manifest.data, example, strict=True)
        for axis, length in zip(entry.shape, tensor.shape, strict=True)
        if isinstance(axis, str)
    }
    asked = (0, 1) if varying else (0,)
    with eager.borrowed():
        done: list[int] = []
        for more in asked:
            # A length whose numbers are not finite shows nothing: the whole is left to the next.
            if check.lengths(example, more, whole=not done):
                done.append(more)
    lengths = {axis: tuple(length + more for more in done) for axis, length in varying.items()}
    missing = check.jumps()
    if len(done) < len(asked):
        missing.append("the example gives PyTorch itself a loss or gradient that is not finite")
    if check.vague:
        missing.append(
            f"rounding alone moves {len(check.vague)} results so far that an error of a quarter would "
            f"not show, such as {next(iter(check.vague)).removeprefix('next.')}"
        )
    how = "not all was compared" if done else "nothing was compared"
    return Checked(runtime=name, lengths=lengths, unchecked=f"{how}: {'; '.join(missing)}" if missing else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    eager: Eager
    manifest: Manifest
    values: Arrays
    runtime: str
    sessions: Mapping[str, Any]
    # Results that rounding moves so far that a wrong one would not show, by name, in order.
    vague: dict[str, None] = field(default_factory=dict)
    # By which share of its size a result differs that rounding moves in jumps, by name.
    jumped: dict[str, float] = field(default_factory=dict)

    def jumps(self) -> list[str]:
        """Say what is known less well than rounding once would have it, or nothing."""
        if not self.jumped:
            return []
        name, share = max(self.jumped.items(), key=lambda item: item[1])
        return [
            f"{len(self.jumped)} results differ from PyTorch's, {name.removeprefix('next.')} by {share:.2g} of its size, "
            f"as PyTorch's own do where its operators round {SLACK:g} times as much: a rounding decides at ReLUs and "
            "maxima. An error as large would not show"
        ]

    def lengths(self, example: Sequence[torch.Tensor], more: int, whole: bool) -> bool:
        """Compare a step and predictions; False where PyTorch's numbers are not finite.

        `whole`: also a second step, and PyTorch's with itself.
        """
        hyper = self._hyper()
        made = self._first(example, more, hyper)
        if made is None:
            return False
        batch, want = made
        where = f"a batch of {len(batch[0])} rows" if batch[0].ndim else "the example"
        if whole:
            self._repeats(self.eager.step(self.values, batch, hyper, SEED), want, where)
        self._step(self.values, batch, hyper, want, where, (1, 2) if whole else (1,))
        # The state of after, but with weights of before: the rate is far from one that trains.
        updated = {t.name: want[t.next] for t in self.manifest.state if t.role in ("buffer", "optimiser") and t.next}
        after = self.values | updated | {"step": np.array(self.values["step"] + 1)}
        if whole:
            want = self.eager.step(after, batch, hyper, SEED)
            if is_finite(want):
                self._step(after, batch, hyper, want, f"{where}, second step", (3,))
        want = self.eager.predict(after, batch)
        moved = movement(lambda: self.eager.predict(after, batch), want, (4,))
        names = [output.name for output in self.manifest.outputs]
        renamed = {f"output {i}": name for i, name in enumerate(names)}
        for graph in ("eval", "infer"):
            keys = {k: renamed.get(k, k) for k in want if (k in renamed) == (graph == "infer")}
            self._compare(graph, self._run(graph, after, batch, hyper), want, keys, moved, where)
        return True

    def _first(
        self, example: Sequence[torch.Tensor], more: int, hyper: Mapping[str, float]
    ) -> tuple[list[torch.Tensor], Arrays] | None:
        """Return a batch for which PyTorch gives finite numbers, and these; the liveliest that it takes."""
        fault: Exception | None = None
        finite = False
        for lively in ("all", "floats", ""):
            batch = list(_batch(self.manifest.data, example, more, lively))
            try:
                want = self.eager.step(self.values, batch, hyper, SEED)
            except Exception as error:
                fault = error
                continue
            finite, fault = is_finite(want), None
            if finite:
                return batch, want
        if fault is not None:
            raise BadInput(
                f"module: PyTorch itself cannot do a step with {more} rows more than the example has: "
                f"{type(fault).__name__}: {str(fault).splitlines()[0] if str(fault) else ''}; expected any "
                "length of the axes that may vary: name them by `dynamic`"
            ) from fault
        return None

    def _hyper(self) -> dict[str, float]:
        hyper = {parameter.name: parameter.default for parameter in self.manifest.hyper}
        rates = [name for name in hyper if name.partition(".")[0] == "lr"]
        largest = max(hyper[name] for name in rates)
        short = any(tensor.dtype == "float16" for tensor in self.manifest.state)
        rate = SHORT_RATE if short else RATE
        for name in rates:
            hyper[name] = hyper[name] / largest * rate if largest > 0 else rate
        return hyper | {k: EPSILON for k in hyper if k.partition(".")[0] == "eps"}

    def _repeats(self, again: Arrays, want: Arrays, where: str) -> None:
        # PyTorch's sums over threads may differ in the last bits, which is all of a gradient that is 0.
        gradients = [np.abs(v).max(initial=0.0) for k, v in want.items() if k.startswith("gradient.")]
        rounding_error = 1e-6 * float(max(gradients))
        updated = {tensor.next for tensor in self.manifest.state if tensor.role in ("parameter", "optimiser")}
        for key in (key for key in want if key not in updated):
            value, size = want[key], float(np.abs(want[key]).max(initial=0.0))
            least = rounding_error if key.startswith("gradient.") else 0.0
            if distance(again[key], value) > max(1e-4 * size, least):
                raise BadInput(
                    f"module: the same state and batch ({where}) give PyTorch {say_farthest(again[key], value)} "
                    f"in {key.removeprefix('next.')} the second time: the module or the loss keeps something "
                    "of its own, or draws random numbers from a generator of its own, and a graph would "
                    "have one number for ever. Expected buffers (register_buffer), and dropout alone"
                )

    def _step(
        self,
        state: Arrays,
        batch: Sequence[torch.Tensor],
        hyper: Mapping[str, float],
        want: Arrays,
        where: str,
        seeds: Sequence[int],
    ) -> None:
        moved = movement(lambda: self.eager.step(state, batch, hyper, SEED), want, seeds)
        found = self._run("step", state, batch, hyper)
        keys = {key: key for key in want if not key.startswith("gradient.") and key in found}
        self._compare("step", found, want, keys, moved, where)
        if "accumulate" in self.manifest.graphs:
            keys = {
                k: f"next.accumulated.{k.removeprefix('gradient.model.')}" for k in want if k.startswith("gradient.")
            }
            self._compare("accumulate", self._run("accumulate", state, batch, hyper), want, keys, moved, where)

    def _run(self, graph: str, state: Arrays, batch: Sequence[torch.Tensor], hyper: Mapping[str, float]) -> Arrays:
        facts = self.manifest.graphs[graph]
        data = {d.name: t.numpy() for d, t in zip(self.manifest.data, batch, strict=True)}
        given = {**state, **data, **{k: np.float64(v) for k, v in hyper.items()}, "seed": np.int64(SEED)}
        try:
            made = self.sessions[graph].run(
                list(facts.outputs), {name: np.asarray(given[name]) for name in facts.inputs}
            )
        except Exception as error:
            raise BadInput(
                f"{facts.file}: {self.runtime} cannot run it, where PyTorch can: {_first_line(error)}. {WAY_OUT}"
            ) from error
        return dict(zip(facts.outputs, made, strict=True))

    def _compare(
        self, graph: str, found: Arrays, want: Arrays, keys: Mapping[str, str], moved: Movement, where: str
    ) -> None:
        """Raise BadInput when a tensor is farther off than rounding can make it; `keys`: outputs by their name in `want`."""
        roles = {tensor.next: tensor.role for tensor in self.manifest.state}
        largest: dict[str, float] = {}
        for key, name in keys.items():
            role = roles.get(name, name)
            largest[role] = max(largest.get(role, 0.0), float(np.abs(want[key]).max(initial=0.0)))
        wrong = []
        for key, name in keys.items():
            exact = want[key]
            unit = unit_of(exact.dtype)
            size = float(np.abs(exact).max(initial=0.0))
            rounded = unit * largest[roles.get(name, name)]
            # A gradient that is 0 in PyTorch may be what rounding leaves of others.
            tolerated = SLACK * max(moved(1.0)[key], unit * size) if size else 8 * rounded
            far = distance(found[name], exact)
            if far > tolerated and size:
                tolerated = max(tolerated, SLACK / FEW * moved(FEW)[key])
            if far > tolerated and size:
                # So little noise may decide at no ReLU, where the runtime's rounding decides otherwise at one.
                tolerated = max(tolerated, BEYOND * moved(SLACK)[key])
                if far <= tolerated:
                    self.jumped[name] = max(self.jumped.get(name, 0.0), far / size)
            # One that is 0 but for rounding is another matter.
            if tolerated > VAGUE * size and size > SLACK * rounded:
                self.vague[name] = None
            if far > tolerated:
                wrong.append(key)
        if wrong:
            key = wrong[0]
            name = keys[key]
            raise BadInput(
                f"{graph}.onnx: it computes something else than PyTorch for {where}: "
                f"{name.removeprefix('next.')} is {say_farthest(found[name], want[key])}; {len(wrong)} of {len(keys)} "
                f"results differ ({self.runtime}). An operator of the module or the loss is exported wrongly. {WAY_OUT}"
            )


def _session(name: str, file: str, content: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise BadInput(f"{file}: {name} cannot load it: {_first_line(error)}. {WAY_OUT}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _batch(data: Sequence[Data], example: Sequence[torch.Tensor], more: int, lively: str) -> Iterator[torch.Tensor]:
    """Yield the example's tensors with their rows repeated, `more` of them.

    One that is everywhere the same tells little: `lively` says which of these get random numbers:
    `all`, from 0 to 1, or `floats`.
    """
    import torch

    generator = torch.Generator().manual_seed(SEED)
    for entry, tensor in zip(data, example, strict=True):
        made = tensor.detach()
        for axis, name in enumerate(entry.shape):
            if isinstance(name, str):
                places = torch.arange(tensor.shape[axis] + more) % tensor.shape[axis]
                made = made.index_select(axis, places)
        same = bool((made == made.reshape(-1)[0]).all()) if made.numel() else False
        if lively and same and made.is_floating_point():
            made = torch.rand(made.shape, generator=generator).to(made.dtype)
        elif lively == "all" and same and made.dtype != torch.bool:
            made = torch.randint(0, 2, made.shape, generator=generator).to(made.dtype)
        yield made.contiguous()
