"""The one registry of metrics: name, unit, direction, and how values are averaged.

Times are averaged arithmetically and rates harmonically (Hoefler and Belli, "Scientific
benchmarking of parallel computing systems", SC'15, rules 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto

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


class Nature(Flag):
    """What a comparison of results takes a number for: a speed, where nothing is said."""

    SPEED = 0
    # Of a result, as opposed to its speed.
    QUALITY = auto()
    # No run disturbs it: where repeats agree it is a fact.
    EXACT = auto()
    # A part of another metric, or how far from a reference a result is that is right or is not one.
    PART = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measured quantity: what it is called, its unit and which way is better."""

    name: str
    unit: str
    direction: Direction
    mean: Mean
    description: str
    nature: Nature = Nature.SPEED


METRICS: dict[str, Metric] = {}


def register_metric(
    name: str, unit: str, direction: Direction, mean: Mean, description: str, nature: Nature = Nature.SPEED
) -> Metric:
    """Add a metric. Raises BadInput when the name is taken with another meaning."""
    new = Metric(name=name, unit=unit, direction=direction, mean=mean, description=description, nature=nature)
    if METRICS.setdefault(name, new) != new:
        raise BadInput(f"metric '{name}' is registered already as {METRICS[name]}")
    return new


def metric(name: str) -> Metric:
    """Look a metric up by name. Raises BadInput with the nearest name when unknown."""
    try:
        return METRICS[name]
    except KeyError:
        raise unknown_name("metric", name, METRICS) from None


def nature_of(name: str) -> Nature:
    """Return a metric's nature; that of a speed where nobody has registered it."""
    return METRICS[name].nature if name in METRICS else Nature.SPEED


# Unit, direction, mean and, of what is no speed, nature of most.
_SECONDS = "s", Direction.LOWER, Mean.ARITHMETIC
_MORE = "1", Direction.HIGHER, Mean.ARITHMETIC
_LESS = "1", Direction.LOWER, Mean.ARITHMETIC
_FACT = "1", Direction.NEUTRAL, Mean.NONE
_PER_SECOND = "1/s", Direction.HIGHER, Mean.HARMONIC
_BYTES = "B", Direction.LOWER, Mean.ARITHMETIC
_BANDWIDTH = "B/s", Direction.HIGHER, Mean.HARMONIC
_FLOPS = "FLOP/s", Direction.HIGHER, Mean.HARMONIC
_GOOD = *_MORE, Nature.QUALITY
_BAD = *_LESS, Nature.QUALITY
_MORE_OF = *_MORE, Nature.PART
_LESS_OF = *_LESS, Nature.PART
_FILE_BYTES = "B", Direction.LOWER, Mean.ARITHMETIC, Nature.EXACT

for _name, _kind, _about in (
    # training
    ("samples_per_second", _PER_SECOND, "global batch over the median step time"),
    ("tokens_per_second", _PER_SECOND, "tokens that one device trains on per second"),
    ("step_time", _SECONDS, "median over steps of the slowest rank's step time"),
    ("compute_time", _SECONDS, "median forward, backward and update time of a step"),
    ("communication_time", _SECONDS, "median time of a step in which a rank does nothing but wait for messages"),
    (
        "communication_total_time",
        _SECONDS,
        "median time of a step in which messages are under way, hidden behind computing or not",
    ),
    ("input_time", _SECONDS, "median time of a step spent on getting its batch"),
    ("communication_share", _LESS, "communication time over step time"),
    ("forward_time", _SECONDS, "median time of a micro-batch's forward pass through all layers"),
    ("backward_time", _SECONDS, "median time of a micro-batch's backward pass through all layers"),
    ("first_step_time", _SECONDS, "first step, slowest rank"),
    ("startup_time", _SECONDS, "process start to the first step, slowest rank"),
    ("train_time", _SECONDS, "first step to the last, without testing the model"),
    ("evaluation_time", _SECONDS, "median time of testing the model on the test set"),
    (
        "time_to_quality",
        _SECONDS,
        "data touched to the target reached; loading libraries, making the model and testing it do not count",
    ),
    ("epoch_time", _SECONDS, "median time of an epoch after the first one, as a study's own script tells it"),
    ("steps_to_quality", _LESS, "steps until the target was reached"),
    ("final_loss", _LESS_OF, "training loss of the last step's global batch"),
    ("accuracy", _GOOD, "share of the test set classified right at the end"),
    ("token_accuracy", _GOOD, "share of the test set's tokens that were foretold, at the end"),
    ("label_accuracy", _GOOD, "share of the test set's zeros and ones that were told right, at the end"),
    ("mean_squared_error", _BAD, "of the test set's outputs, at the end"),
    ("mean_absolute_error", _BAD, "of the test set's outputs, at the end"),
    ("own_score", _GOOD, "what a study's own script tells of the test set at the end, of which more is better"),
    ("own_error", _BAD, "what a study's own script tells of the test set at the end, of which less is better"),
    ("accuracy_ci_low", _MORE_OF, "Wilson 95 % interval of the accuracy, lower end"),
    ("accuracy_ci_high", _MORE_OF, "Wilson 95 % interval of the accuracy, upper end"),
    ("parameters", _FACT, "trainable numbers in the model"),
    ("gradient_bytes", ("B", Direction.NEUTRAL, Mean.NONE), "size of the whole model's flat gradient"),
    ("weights_deviation", _LESS, "relative distance of the weights to the reference's"),
    ("weights_equality_ratio", _LESS, "distance of the weights to the reference's over its tolerance"),
    ("cpu_utilisation", ("1", Direction.NEUTRAL, Mean.ARITHMETIC), "CPU time over wall time of a rank's training loop"),
    ("gpu_utilisation", ("1", Direction.NEUTRAL, Mean.ARITHMETIC), "share of the time in which a rank's GPU was busy"),
    ("gpu_memory", _BYTES, "largest memory in use on a rank's GPU"),
    ("energy", ("J", Direction.LOWER, Mean.ARITHMETIC), "energy of the training loop on all nodes, by kind of counter"),
    ("peak_memory", _BYTES, "largest resident set of any process"),
    ("memory_at_rest", _BYTES, "resident memory of a rank that is ready to train and has not begun, the largest"),
    (
        "environment_bytes",
        ("B", Direction.LOWER, Mean.NONE, Nature.EXACT),
        "what has to be installed before it trains, the interpreter included, as long as its files are",
    ),
    ("environment_files", ("1", Direction.LOWER, Mean.NONE, Nature.EXACT), "number of those files"),
    (
        "training_memory",
        _BYTES,
        "most resident memory that a rank's forward and backward passes held beyond what it began them with",
    ),
    (
        "offloaded_bytes",
        ("B", Direction.NEUTRAL, Mean.ARITHMETIC),
        "activations of a rank's step that go to host or file",
    ),
    ("offload_wait_time", _SECONDS, "time of a step that a rank's computing waits for them"),
    ("equality_ratio", _LESS, "largest loss deviation from the reference over its tolerance"),
    ("loss_deviation", _LESS, "largest absolute loss deviation from the reference"),
    ("sharp_steps", _MORE, "steps until the tolerance exceeds a tenth of the reference's loss or of its change"),
    ("restart_ratio", _LESS, "largest loss deviation over its tolerance after a restart from a state of the reference"),
    # updates that wait for nobody
    (
        "staleness",
        _LESS,
        "median over applied gradients of the updates between the fetch of their weights and their application",
    ),
    ("staleness_p95", _LESS, "95th percentile of these updates, of 100 gradients or more"),
    # federated learning
    ("round_time", _SECONDS, "median time of an update of the server: all turns that it is made of, and the update"),
    ("turns_per_second", _PER_SECOND, "clients' turns in an update over its median time"),
    ("server_share", _LESS, "median share of an update's time in which no client's turn is computed"),
    (
        "sent_bytes",
        ("B", Direction.LOWER, Mean.ARITHMETIC, Nature.EXACT),
        "models to and from the clients of an update",
    ),
    ("rounds_to_quality", _LESS, "updates of the server until the target was reached"),
    (
        "simulated_time_to_quality",
        (*_LESS, Nature.EXACT),
        "simulated time until the target was reached, in turns of the median client: servers and networks take none",
    ),
    (
        "worst_clients_score",
        _MORE_OF,
        "mean score of the worst tenth of clients, on test samples in their mix of classes",
    ),
    # retraining
    ("checkpoint_time", _SECONDS, "median time of writing the state to a file"),
    ("accuracy_before", _MORE_OF, "share of the test set that the base model classifies right, before it is retrained"),
    # export
    ("model_bytes", _FILE_BYTES, "size of the ONNX file"),
    ("opset", _FACT, "ONNX operator set version"),
    ("ir_version", _FACT, "ONNX intermediate representation version"),
    ("operators", (*_LESS, Nature.EXACT), "nodes in the ONNX graph"),
    ("export_time", _SECONDS, "time of the export call"),
    ("max_abs_difference", _LESS_OF, "largest absolute output difference to the framework"),
    ("max_rel_difference", _LESS_OF, "largest relative output difference to the framework"),
    ("top1_agreement", (*_MORE, Nature.QUALITY | Nature.EXACT), "share of the test set with the same predicted class"),
    # conversion
    ("accuracy_loss", _BAD, "accuracy of the float32 model less that of the converted one, on the same samples"),
    # inference
    ("latency", _SECONDS, "median time of one Run call"),
    ("latency_p95", _SECONDS, "95th percentile of the time of one Run call"),
    ("throughput", _PER_SECOND, "samples per second at the median latency"),
    ("session_time", _SECONDS, "creating the session and loading the model"),
    ("bind_time", _SECONDS, "median time of binding the inputs, apart from Run"),
    ("copy_time", _SECONDS, "median time of copying the outputs, apart from Run"),
    ("end_to_end_time", _SECONDS, "median time of bind, Run and copy together"),
    ("first_result_time", _SECONDS, "start of the process to its first result"),
    ("program_bytes", _FILE_BYTES, "size of the program and the libraries that it loads"),
    (
        "nonfinite_outputs",
        (*_LESS, Nature.QUALITY | Nature.EXACT),
        "NaN and infinite outputs where the framework has none, or has another",
    ),
    ("load_latency", _SECONDS, "median time from a request's arrival to its result"),
    ("load_latency_p95", _SECONDS, "95th percentile from arrival to result"),
    ("load_latency_p99", _SECONDS, "99th percentile from arrival to result"),
    ("served_rate", _PER_SECOND, "requests served per second under an offered load"),
    ("served_share", _MORE, "requests served over requests that arrived"),
    # conformance
    ("conformance_pass_rate", (*_MORE, Nature.QUALITY | Nature.EXACT), "share of ONNX's operator tests that pass"),
    ("conformance_tests", _FACT, "operator tests by what came of them"),
    # classifiers of tickets
    ("accuracy_at_3", _GOOD, "share of the test set whose class is among the 3 likeliest"),
    ("macro_f1", _GOOD, "mean over classes of the harmonic mean of precision and recall, on the test set"),
    ("log_loss", _BAD, "mean of -ln of the true class's probability, on the test set"),
    ("calibration_error", _BAD, "mean over the test set of |confidence - accuracy| of its tenth of confidences"),
    ("validation_accuracy", _MORE_OF, "share of the validation set classified right"),
    ("best_validation_accuracy", _MORE_OF, "the largest such share after any epoch, chosen by that very set"),
    ("validation_log_loss", _LESS_OF, "mean of -ln of the true class's probability, on the validation set"),
    # hardware bounds
    ("flops", _FLOPS, "floating-point rate of a benchmark"),
    ("memory_bandwidth", _BANDWIDTH, "memory bandwidth of a benchmark"),
    ("network_bandwidth", _BANDWIDTH, "bandwidth between ranks"),
    ("network_latency", _SECONDS, "latency between ranks"),
    ("link_bandwidth", _BANDWIDTH, "copies between processors and devices of one node, all of a test together"),
    ("message_time", _SECONDS, "half a round trip of a message between two ranks"),
    ("allreduce_time", _SECONDS, "slowest rank's time of one all-reduce"),
    ("residual", _LESS_OF, "scaled residual of a linear solver"),
    ("benchmark_time", _SECONDS, "time that the benchmark reports"),
    ("update_rate", _PER_SECOND, "random memory updates per second"),
    ("storage_bandwidth", _BANDWIDTH, "reading or writing of a file system"),
    ("metadata_rate", _PER_SECOND, "operations of a file system on names and attributes"),
    ("io500_score", _MORE, "square root of GiB/s times kIOPS, as IO500 defines it"),
    ("collective_time", _SECONDS, "time of one collective operation"),
    (
        "operation_time",
        _SECONDS,
        "median time of one operation of a message sweep, on its slowest rank, at the compared size",
    ),
    ("collective_bandwidth", _BANDWIDTH, "rate of a collective, as its benchmark counts"),
    ("message_rate", _PER_SECOND, "messages per second between pairs of ranks"),
    ("overlap", _MORE, "share of communication that hides behind computing"),
    (
        "input_overlap",
        _MORE,
        "share of preparing batches that no step waits for, of trainers that prepare them ahead and tell",
    ),
    ("bubble", _LESS, "share of all ranks' steps in which a stage of a pipeline waits for its neighbours' results"),
    (
        "predicted_step_time",
        _SECONDS,
        "step time as simulated before the training ran, from profiled layers and probed messages",
    ),
    ("predicted_samples_per_second", _PER_SECOND, "global batch over the predicted step time"),
    ("traversal_rate", _PER_SECOND, "edges of a graph traversed per second"),
    ("mixed_flops", _FLOPS, "rate of a solver that may use lower precision"),
    ("sparse_flops", _FLOPS, "rate of a conjugate gradient benchmark"),
    ("kernel_flops", _FLOPS, "rate of an application kernel, by its own formula"),
    ("pose_time", _SECONDS, "time of one pose of a docking kernel"),
    ("interaction_rate", _PER_SECOND, "pairs of a ligand and a protein atom per second"),
    ("warm_up_time", _SECONDS, "first run of a kernel, in which some compile"),
    ("operation_rate", _PER_SECOND, "operations per second, as a benchmark counts them"),
):
    register_metric(_name, *_kind[:3], _about, *_kind[3:])
