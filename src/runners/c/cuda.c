#include "cuda.h"

#include <dlfcn.h>
#include <stdint.h>

/* The symbol of the driver, NULL where it has none or is not there itself. */
static void *driver_symbol(const char *name)
{
    static void *driver;
    if (driver == NULL)
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver == NULL ? NULL : dlsym(driver, name);
}

static int (*copy_to_host)(void *to, uintptr_t from, size_t bytes);
static int (*copy_to_device)(uintptr_t to, const void *from, size_t bytes);

bool cuda_has_device(struct failure *failure)
{
    int (*init)(unsigned int flags) = NULL;
    int (*count_devices)(int *count) = NULL;
    *(void **)&init = driver_symbol("cuInit");
    *(void **)&count_devices = driver_symbol("cuDeviceGetCount");
    *(void **)&copy_to_host = driver_symbol("cuMemcpyDtoH_v2");
    *(void **)&copy_to_device = driver_symbol("cuMemcpyHtoD_v2");
    int count = 0;
    if (init == NULL || count_devices == NULL || copy_to_host == NULL ||
        copy_to_device == NULL || init(0) != 0 ||
        count_devices(&count) != 0 || count < 1)
        return fail(failure, CAUSE_NO_PROVIDER, "no CUDA device");
    return true;
}

bool cuda_copy(void *to, const void *from, size_t bytes, struct failure *failure)
{
    int error = bytes == 0 ? 0 : copy_to_host(to, (uintptr_t)from, bytes);
    if (error != 0)
        return fail(failure, CAUSE_CRASH, "CUDA: cuMemcpyDtoH returned %d for %zu bytes", error,
                    bytes);
    return true;
}

bool cuda_upload(void *to, const void *from, size_t bytes, struct failure *failure)
{
    int error = bytes == 0 ? 0 : copy_to_device((uintptr_t)to, from, bytes);
    if (error != 0)
        return fail(failure, CAUSE_CRASH, "CUDA: cuMemcpyHtoD returned %d for %zu bytes", error,
                    bytes);
    return true;
}
