"""The one registry of metrics: name, unit, direction, and how values are averaged.

Times are averaged arithmetically and rates harmonically (Hoefler and Belli, "Scientific
benchmarking of parallel computing systems", SC'15, rules 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from transect.domain.errors import BadInput, unknown_name


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEUTRAL = "neutral"


class Mean(StrEnum):
    """How several values of one metric become one."""

    ARITHMETIC = "arithmetic"
    HARMONIC = "harmonic"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measured quantity: what it is called, its unit and which way is better."""

    name: str
    unit: str
    direction: Direction
    mean: Mean
    description: str


METRICS: dict[str, Metric] = {}


def register_metric(name: str, unit: str, direction: Direction, mean: Mean, description: str) -> Metric:
    """Add a metric. Raises BadInput when the name is taken with another meaning."""
    new = Metric(name=name, unit=unit, direction=direction, mean=mean, description=description)
    if METRICS.setdefault(name, new) != new:
        raise BadInput(f"metric '{name}' is registered already as {METRICS[name]}")
    return new


def metric(name: str) -> Metric:
    """Look a metric up by name. Raises BadInput with the nearest name when unknown."""
    try:
        return METRICS[name]
    except KeyError:
        raise unknown_name("metric", name, METRICS) from None


_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL
_TIME, _RATE, _NONE = Mean.ARITHMETIC, Mean.HARMONIC, Mean.NONE

for _row in (
    # training
    ("samples_per_second", "1/s", _HIGHER, _RATE, "global batch over the median step time"),
    ("tokens_per_second", "1/s", _HIGHER, _RATE, "tokens that one device trains on per second"),
    ("step_time", "s", _LOWER, _TIME, "median over steps of the slowest rank's step time"),
    ("compute_time", "s", _LOWER, _TIME, "median forward, backward and update time of a step"),
    (
        "communication_time",
        "s",
        _LOWER,
        _TIME,
        "median time of a step in which a rank does nothing but wait for messages",
    ),
    (
        "communication_total_time",
        "s",
        _LOWER,
        _TIME,
        "median time of a step in which messages are under way, hidden behind computing or not",
    ),
    ("input_time", "s", _LOWER, _TIME, "median time of a step spent on getting its batch"),
    ("communication_share", "1", _LOWER, _TIME, "communication time over step time"),
    ("forward_time", "s", _LOWER, _TIME, "median time of a micro-batch's forward pass through all layers"),
    ("backward_time", "s", _LOWER, _TIME, "median time of a micro-batch's backward pass through all layers"),
    ("first_step_time", "s", _LOWER, _TIME, "first step, slowest rank"),
    ("startup_time", "s", _LOWER, _TIME, "process start to the first step, slowest rank"),
    ("train_time", "s", _LOWER, _TIME, "first step to the last, evaluations included"),
    (
        "time_to_quality",
        "s",
        _LOWER,
        _TIME,
        "data touched to the target reached; evaluations count, loading libraries and making the model do not",
    ),
    ("steps_to_quality", "1", _LOWER, _TIME, "steps until the target was reached"),
    ("final_loss", "1", _LOWER, _TIME, "training loss of the last step's global batch"),
    ("accuracy", "1", _HIGHER, _TIME, "share of the test set classified right at the end"),
    ("accuracy_ci_low", "1", _HIGHER, _TIME, "Wilson 95 % interval of the accuracy, lower end"),
    ("accuracy_ci_high", "1", _HIGHER, _TIME, "Wilson 95 % interval of the accuracy, upper end"),
    ("parameters", "1", _NEUTRAL, _NONE, "trainable numbers in the model"),
    ("gradient_bytes", "B", _NEUTRAL, _NONE, "size of the whole model's flat gradient"),
    ("weights_deviation", "1", _LOWER, _TIME, "relative distance of the weights to the reference's"),
    ("weights_equality_ratio", "1", _LOWER, _TIME, "distance of the weights to the reference's over its tolerance"),
    ("cpu_utilisation", "1", _NEUTRAL, _TIME, "CPU time over wall time of a rank's training loop"),
    ("gpu_utilisation", "1", _NEUTRAL, _TIME, "share of the time in which a rank's GPU was busy"),
    ("gpu_memory", "B", _LOWER, _TIME, "largest memory in use on a rank's GPU"),
    ("energy", "J", _LOWER, _TIME, "energy of the training loop on all nodes, by kind of counter"),
    ("peak_memory", "B", _LOWER, _TIME, "largest resident set of any process"),
    (
        "memory_at_rest",
        "B",
        _LOWER,
        _TIME,
        "resident memory of a rank that is ready to train and has not begun, the largest",
    ),
    (
        "environment_bytes",
        "B",
        _LOWER,
        _NONE,
        "what has to be installed before it trains, the interpreter included, as long as its files are",
    ),
    ("environment_files", "1", _LOWER, _NONE, "number of those files"),
    (
        "training_memory",
        "B",
        _LOWER,
        _TIME,
        "most resident memory that a rank's forward and backward passes held beyond what it began them with",
    ),
    ("offloaded_bytes", "B", _NEUTRAL, _TIME, "activations of a rank's step that go to host or file"),
    ("offload_wait_time", "s", _LOWER, _TIME, "time of a step that a rank's computing waits for them"),
    ("equality_ratio", "1", _LOWER, _TIME, "largest loss deviation from the reference over its tolerance"),
    ("loss_deviation", "1", _LOWER, _TIME, "largest absolute loss deviation from the reference"),
    (
        "sharp_steps",
        "1",
        _HIGHER,
        _TIME,
        "steps until the tolerance exceeds a tenth of the reference's loss or of its change",
    ),
    (
        "restart_ratio",
        "1",
        _LOWER,
        _TIME,
        "largest loss deviation over its tolerance after a restart from a state of the reference",
    ),
    # updates that wait for nobody
    (
        "staleness",
        "1",
        _LOWER,
        _TIME,
        "median over applied gradients of the updates between the fetch of their weights and their application",
    ),
    ("staleness_p95", "1", _LOWER, _TIME, "95th percentile of these updates, of 100 gradients or more"),
    # retraining
    ("checkpoint_time", "s", _LOWER, _TIME, "median time of writing the state to a file"),
    (
        "accuracy_before",
        "1",
        _HIGHER,
        _TIME,
        "share of the test set that the base model classifies right, before it is retrained",
    ),
    # export
    ("model_bytes", "B", _LOWER, _TIME, "size of the ONNX file"),
    ("opset", "1", _NEUTRAL, _NONE, "ONNX operator set version"),
    ("ir_version", "1", _NEUTRAL, _NONE, "ONNX intermediate representation version"),
    ("operators", "1", _LOWER, _TIME, "nodes in the ONNX graph"),
    ("export_time", "s", _LOWER, _TIME, "time of the export call"),
    ("max_abs_difference", "1", _LOWER, _TIME, "largest absolute output difference to the framework"),
    ("max_rel_difference", "1", _LOWER, _TIME, "largest relative output difference to the framework"),
    ("top1_agreement", "1", _HIGHER, _TIME, "share of the test set with the same predicted class"),
    # conversion
    (
        "accuracy_loss",
        "1",
        _LOWER,
        _TIME,
        "accuracy of the float32 model less that of the converted one, on the same samples",
    ),
    # inference
    ("latency", "s", _LOWER, _TIME, "median time of one Run call"),
    ("latency_p95", "s", _LOWER, _TIME, "95th percentile of the time of one Run call"),
    ("throughput", "1/s", _HIGHER, _RATE, "samples per second at the median latency"),
    ("session_time", "s", _LOWER, _TIME, "creating the session and loading the model"),
    ("bind_time", "s", _LOWER, _TIME, "median time of binding the inputs, apart from Run"),
    ("copy_time", "s", _LOWER, _TIME, "median time of copying the outputs, apart from Run"),
    ("end_to_end_time", "s", _LOWER, _TIME, "median time of bind, Run and copy together"),
    ("first_result_time", "s", _LOWER, _TIME, "start of the process to its first result"),
    ("program_bytes", "B", _LOWER, _TIME, "size of the program and the libraries that it loads"),
    ("nonfinite_outputs", "1", _LOWER, _TIME, "NaN and infinite outputs where the framework has none, or has another"),
    ("load_latency", "s", _LOWER, _TIME, "median time from a request's arrival to its result"),
    ("load_latency_p95", "s", _LOWER, _TIME, "95th percentile from arrival to result"),
    ("load_latency_p99", "s", _LOWER, _TIME, "99th percentile from arrival to result"),
    ("served_rate", "1/s", _HIGHER, _RATE, "requests served per second under an offered load"),
    ("served_share", "1", _HIGHER, _TIME, "requests served over requests that arrived"),
    # conformance
    ("conformance_pass_rate", "1", _HIGHER, _TIME, "share of ONNX's operator tests that pass"),
    ("conformance_tests", "1", _NEUTRAL, _NONE, "operator tests by what came of them"),
    # classifiers of tickets
    ("accuracy_at_3", "1", _HIGHER, _TIME, "share of the test set whose class is among the 3 likeliest"),
    (
        "macro_f1",
        "1",
        _HIGHER,
        _TIME,
        "mean over classes of the harmonic mean of precision and recall, on the test set",
    ),
    ("log_loss", "1", _LOWER, _TIME, "mean of -ln of the true class's probability, on the test set"),
    (
        "calibration_error",
        "1",
        _LOWER,
        _TIME,
        "mean over the test set of |confidence - accuracy| of its tenth of confidences",
    ),
    ("valid_accuracy", "1", _HIGHER, _TIME, "share of the validation set classified right"),
    ("valid_log_loss", "1", _LOWER, _TIME, "mean of -ln of the true class's probability, on the validation set"),
    # hardware bounds
    ("flops", "FLOP/s", _HIGHER, _RATE, "floating-point rate of a benchmark"),
    ("memory_bandwidth", "B/s", _HIGHER, _RATE, "memory bandwidth of a benchmark"),
    ("network_bandwidth", "B/s", _HIGHER, _RATE, "bandwidth between ranks"),
    ("network_latency", "s", _LOWER, _TIME, "latency between ranks"),
    (
        "link_bandwidth",
        "B/s",
        _HIGHER,
        _RATE,
        "copies between processors and devices of one node, all of a test together",
    ),
    ("message_time", "s", _LOWER, _TIME, "half a round trip of a message between two ranks"),
    ("allreduce_time", "s", _LOWER, _TIME, "slowest rank's time of one all-reduce"),
    ("residual", "1", _LOWER, _TIME, "scaled residual of a linear solver"),
    ("benchmark_time", "s", _LOWER, _TIME, "time that the benchmark reports"),
    ("update_rate", "1/s", _HIGHER, _RATE, "random memory updates per second"),
    ("storage_bandwidth", "B/s", _HIGHER, _RATE, "reading or writing of a file system"),
    ("metadata_rate", "1/s", _HIGHER, _RATE, "operations of a file system on names and attributes"),
    ("io500_score", "1", _HIGHER, _TIME, "square root of GiB/s times kIOPS, as IO500 defines it"),
    ("collective_time", "s", _LOWER, _TIME, "time of one collective operation"),
    ("collective_bandwidth", "B/s", _HIGHER, _RATE, "rate of a collective, as its benchmark counts"),
    ("message_rate", "1/s", _HIGHER, _RATE, "messages per second between pairs of ranks"),
    ("overlap", "1", _HIGHER, _TIME, "share of communication that hides behind computing"),
    (
        "input_overlap",
        "1",
        _HIGHER,
        _TIME,
        "share of preparing batches that no step waits for, of trainers that prepare them ahead and tell",
    ),
    (
        "bubble",
        "1",
        _LOWER,
        _TIME,
        "share of all ranks' steps in which a stage of a pipeline waits for its neighbours' results",
    ),
    (
        "predicted_step_time",
        "s",
        _LOWER,
        _TIME,
        "step time as simulated before the training ran, from profiled layers and probed messages",
    ),
    ("predicted_samples_per_second", "1/s", _HIGHER, _RATE, "global batch over the predicted step time"),
    ("traversal_rate", "1/s", _HIGHER, _RATE, "edges of a graph traversed per second"),
    ("mixed_flops", "FLOP/s", _HIGHER, _RATE, "rate of a solver that may use lower precision"),
    ("sparse_flops", "FLOP/s", _HIGHER, _RATE, "rate of a conjugate gradient benchmark"),
    ("kernel_flops", "FLOP/s", _HIGHER, _RATE, "rate of an application kernel, by its own formula"),
    ("pose_time", "s", _LOWER, _TIME, "time of one pose of a docking kernel"),
    ("interaction_rate", "1/s", _HIGHER, _RATE, "pairs of a ligand and a protein atom per second"),
    ("warm_up_time", "s", _LOWER, _TIME, "first run of a kernel, in which some compile"),
    ("operation_rate", "1/s", _HIGHER, _RATE, "operations per second, as a benchmark counts them"),
):
    register_metric(*_row)
