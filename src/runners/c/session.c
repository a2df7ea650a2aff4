#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "files.h"
#include "kinds.h"

enum { LOG_INFO = 1, LOG_ERROR = 3 };

static bool log_and_profile(const struct runtime *runtime, const char *profile,
                            OrtSessionOptions *to, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    return succeeded(runtime, api->SetSessionLogSeverityLevel(to, profile ? LOG_INFO : LOG_ERROR),
                     failure) &&
           (profile == NULL || succeeded(runtime, api->EnableProfiling(to, profile), failure));
}

static bool update_cuda(const struct runtime *runtime, yyjson_val *values,
                        OrtCUDAProviderOptionsV2 *cuda, struct failure *failure)
{
    size_t index, count = yyjson_obj_size(values);
    yyjson_val *key, *value;
    const char **texts = reserve(2 * count, sizeof *texts, failure);
    if (texts == NULL)
        return false;
    yyjson_obj_foreach(values, index, count, key, value) {
        texts[index] = yyjson_get_str(key);
        texts[count + index] = yyjson_get_str(value);
    }
    OrtStatus *status =
        runtime->api->UpdateCUDAProviderOptions(cuda, texts, texts + count, count);
    bool ok = succeeded(runtime, status, failure);
    free(texts);
    return ok;
}

/* Adds CUDA's provider: where that goes well and the session can be made, the session has it. The
   first of these calls loads its library, setting options if there are any; what is then wrong is
   an option or the provider. */
static bool append_cuda(const struct runtime *runtime, yyjson_val *values, OrtSessionOptions *to,
                        struct failure *failure)
{
    const OrtApi *api = runtime->api;
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    struct failure said;
    enum cause cause = CAUSE_NO_PROVIDER;
    bool ok = succeeded(runtime, api->CreateCUDAProviderOptions(&cuda), &said);
    if (ok && !update_cuda(runtime, values, cuda, &said)) {
        ok = false;
        cause = strstr(said.message, "Failed to load") ? CAUSE_NO_PROVIDER : CAUSE_BAD_INPUT;
    }
    ok = ok && succeeded(runtime, api->SessionOptionsAppendExecutionProvider_CUDA_V2(to, cuda),
                         &said);
    if (cuda != NULL)
        api->ReleaseCUDAProviderOptions(cuda);
    return ok || fail(failure, cause, "the CUDA provider: %.3000s", said.message);
}

/* The memory in which the provider leaves outputs. */
static bool find_output_memory(struct session *session, enum provider provider, yyjson_val *values,
                               struct failure *failure)
{
    const OrtApi *api = session->runtime->api;
    const char *device = yyjson_get_str(yyjson_obj_get(values, "device_id"));
    OrtStatus *status =
        provider == PROVIDER_CPU
            ? api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault,
                                       &session->output_memory)
            : api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, device ? atoi(device) : 0,
                                    OrtMemTypeDefault, &session->output_memory);
    return succeeded(session->runtime, status, failure);
}

static bool describe_output(struct session *session, size_t index, struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    struct output *output = &session->outputs[index];
    char *name;
    OrtTypeInfo *type;
    if (!succeeded(runtime, api->SessionGetOutputName(session->session, index, runtime->allocator,
                                                      &name), failure))
        return false;
    output->name = strdup(name);
    runtime->allocator->Free(runtime->allocator, name);
    if (output->name == NULL)
        return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a name");
    if (!succeeded(runtime, api->SessionGetOutputTypeInfo(session->session, index, &type), failure))
        return false;
    bool ok = kind_describe(runtime, type, output->kind, sizeof output->kind, failure);
    api->ReleaseTypeInfo(type);
    return ok;
}

static bool describe_outputs(struct session *session, struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    size_t count;
    if (!succeeded(runtime, runtime->api->SessionGetOutputCount(session->session, &count), failure))
        return false;
    session->outputs = reserve(count, sizeof *session->outputs, failure);
    bool ok = session->outputs != NULL;
    while (ok && session->output_count < count)
        ok = describe_output(session, session->output_count++, failure);
    return ok;
}

/* Creates the session, which is timed. What loads with it in other languages, the provider's
   library, is within. */
static bool create(struct session *session, const char *model, enum provider provider,
                   yyjson_val *provider_options, OrtSessionOptions *options,
                   struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    int64_t begin_ns = now_ns();
    bool ok = (provider == PROVIDER_CPU ||
               append_cuda(runtime, provider_options, options, failure)) &&
              succeeded(runtime, runtime->api->CreateSession(runtime->environment, model, options,
                                                             &session->session), failure);
    session->created_ns = now_ns() - begin_ns;
    return ok;
}

bool session_open(const struct runtime *runtime, const char *model, enum provider provider,
                  const struct options *options, const char *profile, struct session *session,
                  struct failure *failure)
{
    *session = (struct session){.runtime = runtime};
    yyjson_val *provider_options = options_of_provider(options);
    if (!is_file(model))
        return fail(failure, CAUSE_BAD_INPUT, "%s: no such model file", model);
    OrtSessionOptions *session_options = NULL;
    bool ok = succeeded(runtime, runtime->api->CreateSessionOptions(&session_options), failure) &&
              options_apply(options, runtime, session_options, failure) &&
              log_and_profile(runtime, profile, session_options, failure) &&
              create(session, model, provider, provider_options, session_options, failure) &&
              find_output_memory(session, provider, provider_options, failure) &&
              describe_outputs(session, failure) &&
              succeeded(runtime, runtime->api->CreateIoBinding(session->session, &session->binding),
                        failure);
    if (session_options != NULL)
        runtime->api->ReleaseSessionOptions(session_options);
    if (!ok)
        session_close(session);
    return ok;
}

void session_close(struct session *session)
{
    if (session->runtime == NULL)
        return;
    for (size_t i = 0; i < session->output_count; i++) {
        free(session->outputs[i].name);
        free(session->outputs[i].data);
        free(session->outputs[i].offsets);
    }
    free(session->outputs);
    const OrtApi *api = session->runtime->api;
    api->ReleaseIoBinding(session->binding);
    api->ReleaseMemoryInfo(session->output_memory);
    api->ReleaseSession(session->session);
    *session = (struct session){0};
}

char *session_end_profile(struct session *session, struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    char *file;
    if (!succeeded(runtime, runtime->api->SessionEndProfiling(session->session, runtime->allocator,
                                                              &file), failure))
        return NULL;
    char *copy = strdup(file);
    runtime->allocator->Free(runtime->allocator, file);
    if (copy == NULL)
        fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a name");
    return copy;
}
