"""The docking kernel in OpenCL: one work-item for each vector of poses, on a CPU or a GPU."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from transect.domain.paths import ROOT
from transect.hpc.probes._docking_deck import ROW, Deck
from transect.hpc.probes._docking_energy import CONSTANTS, constants, positions
from transect.hpc.probes._docking_program import Lacks

cl: Any = importlib.import_module("pyopencl")

SOURCE = ROOT / "src" / "kernels" / "docking" / "opencl" / "docking.cl"


def _device(kind: str) -> Any:
    """Return the first device of the kind that any platform has. Raises Lacks."""
    wanted = cl.device_type.CPU if kind == "cpu" else cl.device_type.GPU
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:  # the loader's word for none
        platforms, why = [], str(error)
    else:
        why = ""
    for platform in platforms:
        try:
            if devices := platform.get_devices(wanted):
                return devices[0]
        except cl.Error:  # a platform without such a device
            continue
    names = ", ".join(platform.name for platform in platforms)
    raise Lacks(
        f"OpenCL: no platform has a {kind.upper()} ({names or why or 'there is no platform'}); "
        "PoCL of the distribution is one for CPUs: pocl-opencl-icd"
    )


class OpenCLKernel:
    """Computes all energies of a deck in float32; a run ends when its energies are back."""

    def __init__(self, deck: Deck, threads: int, device: str, per_item: int, group: int) -> None:
        """Compile for the first device of its kind, of a CPU for as many compute units as threads.

        Raises Lacks when there is no such device, or it cannot be divided so.
        """
        whole = _device("cpu" if device == "cpu" else "gpu")
        part = whole
        if device == "cpu" and threads < whole.max_compute_units:
            try:
                (part,) = whole.create_sub_devices([cl.device_partition_property.BY_COUNTS, threads])
            except cl.Error as error:
                raise Lacks(f"OpenCL: {whole.name} gives no {threads} compute units: {error}") from None
        elif device == "cpu" and threads > whole.max_compute_units:
            raise Lacks(f"OpenCL: {whole.name} has {whole.max_compute_units} compute units, {threads} were asked for")
        context = cl.Context([part])
        self._queue = cl.CommandQueue(context)
        options = [f"-DPER_ITEM={per_item}", "-cl-mad-enable", "-cl-finite-math-only"]
        program = cl.Program(context, SOURCE.read_text()).build(options=options)
        self._kernel = cl.Kernel(program, "energies_of")
        flags = cl.mem_flags

        def given(array: np.ndarray) -> Any:
            array = np.ascontiguousarray(array)
            return cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)

        poses = deck.poses.shape[1]
        items = -(-poses // per_item)
        table = np.zeros((len(deck.kinds), len(deck.kinds), ROW), np.float32)
        table[..., :CONSTANTS] = constants(deck.kinds)
        self.energies = np.full(poses, np.nan, np.float32)
        self._out = cl.Buffer(context, flags.WRITE_ONLY, self.energies.nbytes)
        # OpenCL itself keeps no argument alive.
        self._arguments = (
            given(positions(deck.ligand, np.float32)),
            given(deck.ligand["kind"]),
            np.int32(len(deck.ligand)),
            given(positions(deck.protein, np.float32)),
            given(deck.protein["kind"]),
            np.int32(len(deck.protein)),
            given(table),
            np.int32(len(deck.kinds)),
            given(deck.poses),
            np.int32(poses),
            np.int32(items),
            self._out,
        )
        self._kernel.set_args(*self._arguments)
        self._sizes = ((-(-items // group) * group,), (group,))
        platform = whole.platform
        self.name = f"{platform.name} {platform.version}".strip()
        self.threading = f"{part.max_compute_units} compute units of {whole.name.strip()}"

    def run(self) -> None:
        """Compute `energies` anew; the first call compiles for this size."""
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, *self._sizes)
        cl.enqueue_copy(self._queue, self.energies, self._out)
        self._queue.finish()

    def close(self) -> None:
        """Nothing to end."""
