"""TensorFlow's MultiWorkerMirroredStrategy: TF_CONFIG."""

from __future__ import annotations

import json

from transect.launch.rendezvous import NUMBERS, RENDEZVOUS, Rendezvous, World


@RENDEZVOUS.register("tf-config")
class TfConfig(Rendezvous):
    """The addresses of all workers and the own index. Gradients travel over these addresses.

    Source: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
    """

    strategies = {  # noqa: RUF012
        "tensorflow": ("multiworker-ring", "multiworker-nccl"),
        "keras": ("multiworker-ring", "multiworker-nccl"),
    }
    numeric = True

    def common(self, world: World) -> dict[str, str]:
        """TensorFlow's own thread pool does not follow OMP_NUM_THREADS."""
        return {"TF_NUM_INTRAOP_THREADS": str(world.threads)}

    def per_rank(self, world: World) -> dict[str, str]:
        """TF_CONFIG, and the rank's numbers."""
        workers = [
            f"{address}:{world.port + local_rank}"
            for address, count in zip(world.addresses, world.on_each, strict=True)
            for local_rank in range(count)
        ]
        task = '"task": {"type": "worker", "index": {rank}}'
        cluster = f'"cluster": {json.dumps({"worker": workers})}'
        return {**NUMBERS, "TF_CONFIG": f"{{{cluster}, {task}}}"}
