#include "session.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "result.h"

enum { LOG_INFO = 1, LOG_ERROR = 3 };

const OrtApi *api;
struct runtime runtime;

void check(OrtStatus *status)
{
    if (status == NULL)
        return;
    OrtErrorCode code = api->GetErrorCode(status);
    const char *said = api->GetErrorMessage(status);
    bool memory = strstr(said, "bad_alloc") != NULL || strstr(said, "Failed to allocate memory");
    bool bad = code == ORT_INVALID_ARGUMENT || code == ORT_NO_SUCHFILE || code == ORT_NO_MODEL ||
               code == ORT_INVALID_PROTOBUF || code == ORT_INVALID_GRAPH;
    /* A file that is no model, or one of an unknown opset, is only FAIL. */
    bad |= strstr(said, "ModelProto") != NULL || strstr(said, "Load model") != NULL;
    fail(memory ? CAUSE_OUT_OF_MEMORY : bad ? CAUSE_BAD_INPUT : CAUSE_CRASH, "ONNX Runtime: %s",
         said);
}

void runtime_open(const char *library)
{
    /* Never closed: threads that the library has started may outlive its environment. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail(CAUSE_MISSING_DEPENDENCY, "%s: cannot be loaded: %s", library, dlerror());
    const OrtApiBase *(*get_base)(void) = NULL;
    /* POSIX promises that a function's address fits, ISO C has no cast for it. */
    *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
    if (get_base == NULL)
        fail(CAUSE_MISSING_DEPENDENCY, "%s: it has no OrtGetApiBase", library);
    runtime.version = get_base()->GetVersionString();
    api = get_base()->GetApi(ORT_API_VERSION);
    if (api == NULL)
        fail(CAUSE_MISSING_DEPENDENCY, "%s: it is ONNX Runtime %s, expected API version %d",
             library, runtime.version, ORT_API_VERSION);
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "transect", &runtime.environment));
    check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &runtime.host));
    check(api->GetAllocatorWithDefaultOptions(&runtime.allocator));
}

static OrtStatus *set_option(const char *name, const char *value, OrtSessionOptions *to)
{
    bool on = value[0] == '1';
    if (strcmp(name, "intra_op_num_threads") == 0)
        return api->SetIntraOpNumThreads(to, atoi(value));
    if (strcmp(name, "inter_op_num_threads") == 0)
        return api->SetInterOpNumThreads(to, atoi(value));
    if (strcmp(name, "execution_mode") == 0)
        return api->SetSessionExecutionMode(
            to, strcmp(value, "parallel") == 0 ? ORT_PARALLEL : ORT_SEQUENTIAL);
    if (strcmp(name, "graph_optimization_level") == 0)
        return api->SetSessionGraphOptimizationLevel(
            to, strcmp(value, "disabled") == 0   ? ORT_DISABLE_ALL
                : strcmp(value, "basic") == 0    ? ORT_ENABLE_BASIC
                : strcmp(value, "extended") == 0 ? ORT_ENABLE_EXTENDED
                                                 : ORT_ENABLE_ALL);
    if (strcmp(name, "enable_cpu_mem_arena") == 0)
        return on ? api->EnableCpuMemArena(to) : api->DisableCpuMemArena(to);
    if (strcmp(name, "enable_mem_pattern") == 0)
        return on ? api->EnableMemPattern(to) : api->DisableMemPattern(to);
    return api->AddSessionConfigEntry(to, name, value);
}

static void check_cuda(OrtStatus *status, enum cause otherwise)
{
    if (status == NULL)
        return;
    const char *message = api->GetErrorMessage(status);
    fail(strstr(message, "Failed to load") != NULL ? CAUSE_NO_PROVIDER : otherwise,
         "the CUDA provider: ONNX Runtime: %s", message);
}

/* Adds CUDA's provider: where that goes well and the session can be made, the session has it. The
   first of these calls loads its library, setting options if there are any; what is then wrong is
   an option or the provider. Returns the device's number. */
static int append_cuda(const struct plan *plan, OrtSessionOptions *to)
{
    OrtCUDAProviderOptionsV2 *cuda;
    size_t count = 0;
    int device = 0;
    const char **names = reserve(2 * plan->count, sizeof *names), **values = names + plan->count;
    for_entries(option, plan, ROLE_PROVIDER_OPTION, ANY_GROUP) {
        names[count] = option->name;
        values[count++] = option->text;
        if (strcmp(option->name, "device_id") == 0)
            device = atoi(option->text);
    }
    check_cuda(api->CreateCUDAProviderOptions(&cuda), CAUSE_NO_PROVIDER);
    check_cuda(api->UpdateCUDAProviderOptions(cuda, names, values, count), CAUSE_BAD_INPUT);
    check_cuda(api->SessionOptionsAppendExecutionProvider_CUDA_V2(to, cuda), CAUSE_NO_PROVIDER);
    api->ReleaseCUDAProviderOptions(cuda);
    free(names);
    return device;
}

void session_open(struct session *session, const struct plan *plan, const struct entry *model,
                  const char *profile)
{
    const char *provider = plan_text(plan, ROLE_PROVIDER, ANY_GROUP);
    bool cuda = strcmp(provider, "cuda") == 0;
    OrtSessionOptions *options;
    *session = (struct session){0};
    if (cuda)
        cuda_open();
    else if (strcmp(provider, "cpu") != 0)
        fail(CAUSE_NO_PROVIDER, "the provider %s is not there", provider);
    check(api->CreateSessionOptions(&options));
    for_entries(option, plan, ROLE_OPTION, ANY_GROUP)
        check(set_option(option->name, option->text, options));
    check(api->SetSessionLogSeverityLevel(options, profile != NULL ? LOG_INFO : LOG_ERROR));
    if (profile != NULL)
        check(api->EnableProfiling(options, profile));
    /* What loads with the session in other languages, the provider's library, is within. */
    int64_t begin_ns = now_ns();
    int device = cuda ? append_cuda(plan, options) : 0;
    check(api->CreateSession(runtime.environment, model->text, options, &session->session));
    session->created_ns = now_ns() - begin_ns;
    api->ReleaseSessionOptions(options);
    check(cuda ? api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, device, OrtMemTypeDefault,
                                       &session->output_memory)
               : api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault,
                                          &session->output_memory));
    check(api->CreateIoBinding(session->session, &session->binding));
    session->outputs = reserve(plan_count(plan, ROLE_OUTPUT, (int)model->group),
                               sizeof *session->outputs);
    for_entries(output, plan, ROLE_OUTPUT, (int)model->group)
        session->outputs[session->output_count++].name = output->name;
}

void session_close(struct session *session)
{
    for (size_t i = 0; i < session->output_count; i++) {
        free(session->outputs[i].data);
        free(session->outputs[i].offsets);
    }
    free(session->outputs);
    api->ReleaseIoBinding(session->binding);
    api->ReleaseMemoryInfo(session->output_memory);
    api->ReleaseSession(session->session);
    *session = (struct session){0};
}
