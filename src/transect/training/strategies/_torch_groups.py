"""What the strategies on torch.distributed share."""

from __future__ import annotations

__all__ = ["end_nccl"]


def end_nccl() -> None:
    """Destroy the process group where NCCL works: a GPU may still read its peer's memory.

    Over gloo there is nothing to do: messages are in the kernel's hands after a barrier, and
    ending gloo's threads is where ranks were seen to abort.
    """
    import torch
    import torch.distributed as dist

    if torch.cuda.is_available() and "nccl" in dist.get_backend_config():
        dist.destroy_process_group()
