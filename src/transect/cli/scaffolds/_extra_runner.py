"""The program of the runtime: ONNX's reference evaluator under the runner contract."""

import sys
import time

# Modules of src/runners/python, which `command` puts on the path.
from main import run_program
from plan import Role


class Engine:
    """One model, ready to run."""

    def __init__(self, plan, model, profile):
        import onnx
        from onnx.reference import ReferenceEvaluator

        start = time.monotonic_ns()
        self.evaluator = ReferenceEvaluator(model)
        self.facts = {
            "session_ns": time.monotonic_ns() - start,
            "runtime_version": onnx.__version__,
            "provider_used": "cpu",
            "options_not_set": sorted(plan.options),
            # Parts of a call that cannot be timed apart from it: `step` gives 0 for them.
            "run_includes": ["bind", "copy"],
        }

    def step(self, feed):
        """Run once; return the nanoseconds of bind, run and copy."""
        start = time.monotonic_ns()
        self.results = self.evaluator.run(None, feed)
        return 0, time.monotonic_ns() - start, 0


class Trainer:
    """The graphs of a portable training step, and its state."""

    def __init__(self, plan):
        self.graphs = plan.graphs
        self.engines = {name: Engine(plan, graph.file, "") for name, graph in self.graphs.items()}
        self.facts = self.engines["step"].facts | {"run_includes": ["bind", "read"]}
        self.values = plan.arrays(Role.STATE)
        self.read = [entry.number for entry in plan.of(Role.METRIC)]

    def run(self, graph, feed):
        """Run a graph with a batch and hyper-parameters; return the nanoseconds of bind, run and read."""
        start, engine, graph = time.monotonic_ns(), self.engines[graph], self.graphs[graph]
        given = self.values | feed
        engine.step({name: given[number] for name, number in graph.takes.items()})
        for name, found in zip(engine.evaluator.output_names, engine.results, strict=True):
            self.values[graph.gives[name]] = found
        self.metrics = [float(self.values[number]) for number in self.read]
        return 0, time.monotonic_ns() - start, 0

    def state(self):
        return self.values


if __name__ == "__main__":
    sys.exit(run_program("extra-runtime", Engine, Trainer))
