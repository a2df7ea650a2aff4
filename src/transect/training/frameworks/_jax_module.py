"""A module of torch in JAX: exported by torch for each shape of a batch, its operators computed by torchax."""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.domain.errors import FAULTS, Unsupported
from transect.training.module_model import ModuleModel


class ModuleNetwork:
    """A pure function of the module's weights, by their names; all numbers in the dtype `precision`.

    Raises Unsupported for a module that draws random numbers, that changes buffers which are no weights, that torch
    cannot export, or with an operator that torchax lacks, which is named.
    """

    def __init__(self, model: ModuleModel, precision: str, batch: int) -> None:
        import torch

        if model.draws:
            raise Unsupported(
                f"{model.name} draws random numbers in its forward pass, and those of JAX are not torch's"
            )
        self._model, self._dtype = model, getattr(torch, precision)
        self._program = cache(self._exported)
        self._program(True, batch)

    def __call__(self, weights: dict[str, Any], x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
        """Return the outputs for a batch, and the buffers that training has changed."""
        from torchax.export import JaxInterpreter

        program, constants, names = self._program(training, len(x))
        given = [
            x if spec.kind.name == "USER_INPUT" else weights.get(names[spec.target], constants.get(spec.target))
            for spec in program.graph_signature.input_specs
        ]
        results = JaxInterpreter(program.graph_module).run(*given, enable_io_processing=False)
        outputs, changed = None, {}
        for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind.name == "USER_OUTPUT":
                outputs = result
            elif spec.target in weights:
                changed[spec.target] = result
        return outputs, changed

    def _exported(self, training: bool, batch: int) -> tuple[Any, dict[str, Any], dict[str, str]]:
        """Return torch's program, what it holds besides weights, and the names of weights by all that they are called."""
        import torch
        from jax import numpy
        from torchax.decompositions import DECOMPOSITIONS
        from torchax.ops.mappings import t2j_dtype

        module = self._model.torch_module().to(self._dtype).train(training)
        real = self._model.inputs == "float"
        x = torch.zeros((batch, *self._model.sample), dtype=self._dtype if real else torch.int64)
        try:
            program = torch.export.export(module, (x,)).run_decompositions().run_decompositions(DECOMPOSITIONS)
        except FAULTS as error:
            first = str(error).strip().splitlines()[:1]
            raise Unsupported(
                f"torch cannot export {self._model.name}: {type(error).__name__}: {' '.join(first)}"
            ) from error
        _check_operators(program, self._model.name)
        held = {**program.state_dict, **program.constants}
        weights = {weight.name for weight in self._model.weight_shapes()}
        _check_buffers(program, weights, self._model.name)
        # A parameter that stands at two places has one of their names.
        first_of = {id(tensor): name for name, tensor in module.named_parameters()}
        names = {name: first_of.get(id(t), name) for name, t in module.named_parameters(remove_duplicate=False)}
        targets = [spec.target for spec in program.graph_signature.input_specs if spec.target is not None]
        names = {target: names.get(target, target) for target in targets}
        constants = {
            target: numpy.asarray(held[target].detach().numpy(), t2j_dtype(held[target].dtype))
            for target in targets
            if names[target] not in weights
        }
        return program, constants, names


def _check_buffers(program: Any, weights: set[str], name: str) -> None:
    changed = {spec.target for spec in program.graph_signature.output_specs if spec.kind.name == "BUFFER_MUTATION"}
    # A batch norm counts its batches, which nothing reads.
    if lost := sorted(target for target in changed - weights if not target.endswith("num_batches_tracked")):
        raise Unsupported(f"{name} changes {', '.join(lost)}, which only torch would keep: expected saved real numbers")


def _check_operators(program: Any, name: str) -> None:
    # The first fills what the second holds.
    from torchax.ops import jaten, ops_registry  # noqa: F401

    known, lacks = ops_registry.all_aten_ops, set()
    for node in program.graph.nodes:
        if node.op == "call_function" and hasattr(node.target, "overloadpacket"):
            found = known.get(node.target) or known.get(node.target.overloadpacket)
            if found is None or not found.is_jax_function:
                lacks.add(str(node.target))
    if lacks:
        raise Unsupported(f"torchax has no {', '.join(sorted(lacks))}, of which {name} is made")
