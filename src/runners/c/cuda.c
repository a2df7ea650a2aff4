#include "cuda.h"

#include <dlfcn.h>
#include <stdint.h>

#include "result.h"

static int (*copy_to_host)(void *to, uintptr_t from, size_t bytes);
static int (*copy_to_device)(uintptr_t to, const void *from, size_t bytes);

void cuda_open(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        fail(CAUSE_NO_PROVIDER, "no CUDA driver: %s", dlerror());
    /* POSIX promises that a function's address fits, ISO C has no cast for it. */
    *(void **)&copy_to_host = dlsym(driver, "cuMemcpyDtoH_v2");
    *(void **)&copy_to_device = dlsym(driver, "cuMemcpyHtoD_v2");
    if (copy_to_host == NULL || copy_to_device == NULL)
        fail(CAUSE_NO_PROVIDER, "the CUDA driver has no cuMemcpyDtoH_v2 or cuMemcpyHtoD_v2");
}

static void check_copy(int error, size_t bytes)
{
    if (error != 0)
        fail(CAUSE_CRASH, "CUDA: a copy of %zu bytes returned %d", bytes, error);
}

void cuda_to_host(void *to, const void *from, size_t bytes)
{
    check_copy(bytes == 0 ? 0 : copy_to_host(to, (uintptr_t)from, bytes), bytes);
}

void cuda_to_device(void *to, const void *from, size_t bytes)
{
    check_copy(bytes == 0 ? 0 : copy_to_device((uintptr_t)to, from, bytes), bytes);
}
