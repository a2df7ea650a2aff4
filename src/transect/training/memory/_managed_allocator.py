"""An allocator of torch over cudaMallocManaged that never gives more than what was free.

It is C, as torch takes allocators from a shared library, and compiled where it is used.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from transect.domain.errors import MissingDependency

# Managed memory beyond a card's free memory can hang the card: hence the limit, of all together.
_SOURCE = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t limit = 0, used = 0;
static int (*allocate)(void **, size_t, unsigned) = NULL;
static int (*release)(void *) = NULL;

int transect_managed_begin(const char *runtime, size_t bytes) {
    void *library = dlopen(runtime, RTLD_NOW);
    if (library == NULL) return 1;
    *(void **)&allocate = dlsym(library, "cudaMallocManaged");
    *(void **)&release = dlsym(library, "cudaFree");
    limit = bytes;
    return allocate == NULL || release == NULL;
}

size_t transect_managed_used(void) { return used; }

void *transect_managed_malloc(ssize_t size, int device, void *stream) {
    void *address = NULL;
    (void)device, (void)stream;
    pthread_mutex_lock(&lock);
    if (allocate != NULL && size > 0 && (size_t)size <= limit - used) {
        if (allocate(&address, (size_t)size, 1 /* cudaMemAttachGlobal */) == 0) used += (size_t)size;
        else address = NULL;
    }
    pthread_mutex_unlock(&lock);
    return address;
}

void transect_managed_free(void *address, ssize_t size, int device, void *stream) {
    (void)device, (void)stream;
    pthread_mutex_lock(&lock);
    if (address != NULL && release != NULL && release(address) == 0) used -= (size_t)size;
    pthread_mutex_unlock(&lock);
}
"""


def compile_allocator(runtime: str, limit: int) -> tuple[Path, ctypes.CDLL]:
    """Return the library, which gives `limit` bytes at most, and its path, for this process.

    `runtime` is the file of the CUDA runtime. Raises MissingDependency without a C compiler or
    without the runtime's functions.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise MissingDependency("managed memory needs a C compiler: there is no `cc`, and no CC is set")
    folder = Path(tempfile.mkdtemp(prefix="transect-managed-"))
    try:
        (folder / "managed.c").write_text(_SOURCE, encoding="ascii")
        argv = [compiler, "-O1", "-shared", "-fPIC", "-o", "managed.so", "managed.c", "-ldl", "-pthread"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingDependency(f"managed memory: {compiler} fails: {done.stderr.strip()}")
        library = ctypes.CDLL(str(folder / "managed.so"))
        library.transect_managed_begin.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        library.transect_managed_used.restype = ctypes.c_size_t
        library.transect_managed_malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        library.transect_managed_malloc.restype = ctypes.c_void_p
        library.transect_managed_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        library.transect_managed_free.restype = None
        if library.transect_managed_begin(os.fsencode(runtime), limit):
            raise MissingDependency(f"managed memory: {runtime} is no CUDA runtime that has it")
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder / "managed.so", library
