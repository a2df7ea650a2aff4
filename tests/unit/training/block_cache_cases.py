"""Checks of the cache below malloc, in a process that has it: `block_cache_cases NAME`, run by test_block_cache.py."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import resource
import subprocess
import sys
import threading

from transect.training.memory._block_cache import Blocks, cached_blocks
from transect.training.memory._limit import Peak, private_bytes

LIBC = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "memalign"):
    getattr(LIBC, name).restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.calloc.argtypes = LIBC.memalign.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.free.argtypes = LIBC.malloc_usable_size.argtypes = [ctypes.c_void_p]
LIBC.malloc_usable_size.restype = ctypes.c_size_t
MIB = 1 << 20


def blocks() -> Blocks:
    found = cached_blocks()
    assert found is not None, "there is no cache"
    return found


def churn(seed: int, rounds: int = 3000) -> None:
    """Ask for, change and free blocks of all sizes by all functions; nobody may write into another's."""
    draw = random.Random(seed)
    held: list[tuple[int, int, int]] = []
    for turn in range(rounds):
        if held and draw.random() < 0.48:
            place = draw.randrange(len(held))
            address, size, mark = held.pop(place)
            ends = ctypes.string_at(address, 8), ctypes.string_at(address + size - 8, 8)
            assert ends == (mark.to_bytes(8, "little"),) * 2, (address, size)
            if draw.random() < 0.7:
                LIBC.free(address)
                continue
            larger = draw.choice((size // 3 + 16, size + 16, 3 * size))
            address = LIBC.realloc(address, larger)
            assert ctypes.string_at(address, 8) == mark.to_bytes(8, "little")
            size = larger
        else:
            size = max(16, int(2 ** draw.uniform(4, 22)))
            way = draw.randrange(3)
            if way == 0:
                address = LIBC.malloc(size)
            elif way == 1:
                address = LIBC.calloc(size // 8 + 1, 8)
                assert not any(ctypes.string_at(address, size))
            else:
                alignment = 1 << draw.randrange(4, 15)
                address = LIBC.memalign(alignment, size)
                assert address % alignment == 0
        assert LIBC.malloc_usable_size(address) >= size
        mark = (seed << 32) + turn
        for where in (address, address + size - 8):
            ctypes.memmove(where, mark.to_bytes(8, "little"), 8)
        held.append((address, size, mark))
    for address, _, _ in held:
        LIBC.free(address)


def many() -> None:
    """From four threads; in the end all is free."""
    before = blocks().told()[0]
    faults: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            churn(seed)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
    assert (left := blocks().told()[0]) == before, f"{left - before} bytes more than {before}"


def again() -> None:
    """A block is used again, for a request that it nearly fits; counts follow."""
    live, _, mapped, _ = blocks().told()
    first = LIBC.malloc(8 * MIB)
    LIBC.free(first)
    assert LIBC.malloc(8 * MIB - 4096 * 100) == first
    other = LIBC.malloc(4 * MIB)
    assert other != first
    now = blocks().told()
    assert now[0] - live == 12 * MIB and now[2] - mapped == 12 * MIB
    LIBC.free(first), LIBC.free(other)
    assert blocks().told()[:2] == (live, live + 12 * MIB)
    blocks().drop()
    assert blocks().told()[2] <= mapped


def limited() -> None:
    """What waits is given back when the kernel gives no more, and only then is there an end."""
    most = private_bytes() + 64 * MIB
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    for size in (10 * MIB, 15 * MIB, 22 * MIB, 30 * MIB):
        held = [LIBC.malloc(size) for _ in range(60 * MIB // size)]
        assert all(held), size
        assert not LIBC.malloc(64 * MIB)
        for address in held:
            LIBC.free(address)
    # Small ones find room too, and who asks the kernel himself.
    assert blocks().told()[2] > 50 * MIB
    with mmap.mmap(-1, 32 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        pass
    held = [LIBC.malloc(MIB) for _ in range(60)]
    for address in held:
        LIBC.free(address)
    # Its stack is of eight.
    thread = threading.Thread(target=lambda: None)
    thread.start(), thread.join()
    held = [LIBC.malloc(MIB) for _ in range(50)]
    for address in held:
        LIBC.free(address)
    small = [LIBC.malloc(60_000) for _ in range(900)]
    assert all(small)


def peak() -> None:
    """The most is what was in use at once, not what has been mapped."""
    waits = LIBC.malloc(32 * MIB)
    ctypes.memset(waits, 1, 32 * MIB)
    LIBC.free(waits)
    seen = Peak()
    seen.begin()
    for _ in range(3):
        one, two = LIBC.malloc(20 * MIB), LIBC.malloc(12 * MIB)
        ctypes.memset(one, 1, 20 * MIB), ctypes.memset(two, 1, 12 * MIB)
        LIBC.free(one), LIBC.free(two)
    assert 32 * MIB <= seen.bytes() < 40 * MIB, seen.bytes()


def children() -> None:
    """A fork may ask for memory while others do; a program that is begun has no cache, and no complaint of it."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            LIBC.free(LIBC.malloc(MIB))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(50):
            child = os.fork()
            if not child:
                LIBC.free(LIBC.malloc(MIB))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    blocks()
    code = "import ctypes; print(hasattr(ctypes.CDLL(None), 'transect_blocks_told'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def without() -> None:
    """There is none."""
    assert cached_blocks() is None


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"{sys.argv[1]} ended")
