#include "runtime.h"

#include <dlfcn.h>
#include <string.h>

static enum cause cause_of(OrtErrorCode code, const char *message)
{
    if (strstr(message, "bad_alloc") != NULL || strstr(message, "Failed to allocate memory"))
        return CAUSE_OUT_OF_MEMORY;
    switch (code) {
    case ORT_INVALID_ARGUMENT:
    case ORT_NO_SUCHFILE:
    case ORT_NO_MODEL:
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
        return CAUSE_BAD_INPUT;
    default:
        /* A file that is no model, or one of an unknown opset, is only FAIL. */
        return strstr(message, "ModelProto") != NULL || strstr(message, "Load model") != NULL
                   ? CAUSE_BAD_INPUT
                   : CAUSE_CRASH;
    }
}

bool succeeded(const struct runtime *runtime, OrtStatus *status, struct failure *failure)
{
    if (status == NULL)
        return true;
    const char *message = runtime->api->GetErrorMessage(status);
    enum cause cause = cause_of(runtime->api->GetErrorCode(status), message);
    fail(failure, cause, "ONNX Runtime: %s", message);
    runtime->api->ReleaseStatus(status);
    return false;
}

bool runtime_open(const char *library, struct runtime *runtime, struct failure *failure)
{
    *runtime = (struct runtime){0};
    /* Never closed: threads that the library has started may outlive its environment. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return fail(failure, CAUSE_MISSING_DEPENDENCY, "--library %s: cannot be loaded: %s",
                    library, dlerror());
    const OrtApiBase *(*get_base)(void) = NULL;
    /* POSIX promises that a function's address fits, ISO C has no cast for it. */
    *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
    if (get_base == NULL)
        return fail(failure, CAUSE_MISSING_DEPENDENCY, "--library %s: it has no OrtGetApiBase",
                    library);
    const OrtApiBase *base = get_base();
    runtime->address = base;
    runtime->version = base->GetVersionString();
    runtime->api = base->GetApi(ORT_API_VERSION);
    if (runtime->api == NULL)
        return fail(failure, CAUSE_MISSING_DEPENDENCY,
                    "--library %s: it is ONNX Runtime %s, expected one with API version %d",
                    library, runtime->version, ORT_API_VERSION);
    const OrtApi *api = runtime->api;
    bool ok = succeeded(runtime, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "transect",
                                                &runtime->environment), failure) &&
              succeeded(runtime, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault,
                                                          &runtime->host), failure) &&
              succeeded(runtime, api->GetAllocatorWithDefaultOptions(&runtime->allocator), failure);
    if (!ok)
        runtime_close(runtime);
    return ok;
}

void runtime_close(struct runtime *runtime)
{
    if (runtime->api == NULL)
        return;
    runtime->api->ReleaseMemoryInfo(runtime->host);
    runtime->api->ReleaseEnv(runtime->environment);
    *runtime = (struct runtime){0};
}
