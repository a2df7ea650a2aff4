/* Whether a model takes the tensors that are given. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

typedef OrtStatus *(*count_function)(const OrtSession *, size_t *);
typedef OrtStatus *(*name_function)(const OrtSession *, size_t, OrtAllocator *, char **);

/* What the model can be given, and how often each tensor was found among it. */
struct search {
    const struct session *session;
    const struct inputs *inputs;
    size_t *found;
    /* For messages: all that it can be given, and what it needs and does not get. */
    char names[1024], missing[1024];
};

static bool is_optional(const struct session *session, size_t index, bool *optional,
                        struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    OrtTypeInfo *type;
    enum ONNXType kind;
    if (!succeeded(runtime, runtime->api->SessionGetInputTypeInfo(session->session, index, &type),
                   failure))
        return false;
    bool ok = succeeded(runtime, runtime->api->GetOnnxTypeFromTypeInfo(type, &kind), failure);
    *optional = ok && kind == ONNX_TYPE_OPTIONAL;
    runtime->api->ReleaseTypeInfo(type);
    return ok;
}

static void append(char *names, size_t size, const char *name)
{
    size_t length = strlen(names);
    snprintf(names + length, size - length, "%s'%s'", length > 0 ? ", " : "", name);
}

/* Counts the tensors of that name. */
static size_t count_given(struct search *search, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < search->inputs->count; i++) {
        bool same = strcmp(search->inputs->tensors[i].name, name) == 0;
        search->found[i] += same;
        count += same;
    }
    return count;
}

static bool look_at(struct search *search, size_t index, name_function get_name, bool needed,
                    struct failure *failure)
{
    const struct session *session = search->session;
    OrtAllocator *allocator = session->runtime->allocator;
    char *name;
    if (!succeeded(session->runtime, get_name(session->session, index, allocator, &name), failure))
        return false;
    bool ok = true, optional = true;
    append(search->names, sizeof search->names, name);
    if (count_given(search, name) == 0 && needed) {
        ok = is_optional(session, index, &optional, failure);
        if (!optional)
            append(search->missing, sizeof search->missing, name);
    }
    allocator->Free(allocator, name);
    return ok;
}

static bool look_at_all(struct search *search, count_function get_count, name_function get_name,
                        bool needed, struct failure *failure)
{
    size_t count;
    bool ok = succeeded(search->session->runtime, get_count(search->session->session, &count),
                        failure);
    for (size_t i = 0; ok && i < count; i++)
        ok = look_at(search, i, get_name, needed, failure);
    return ok;
}

bool session_takes(const struct session *session, const struct inputs *inputs,
                   struct failure *failure)
{
    const OrtApi *api = session->runtime->api;
    struct search search = {.session = session, .inputs = inputs};
    search.found = reserve(inputs->count, sizeof *search.found, failure);
    bool ok = search.found != NULL &&
              look_at_all(&search, api->SessionGetOverridableInitializerCount,
                          api->SessionGetOverridableInitializerName, false, failure) &&
              look_at_all(&search, api->SessionGetInputCount, api->SessionGetInputName, true,
                          failure);
    for (size_t i = 0; ok && i < inputs->count; i++) {
        if (search.found[i] == 0)
            ok = fail(failure, CAUSE_BAD_INPUT, "the model has no input '%s', it takes: %s",
                      inputs->tensors[i].name, search.names);
    }
    if (ok && search.missing[0] != '\0')
        ok = fail(failure, CAUSE_BAD_INPUT, "the model needs %s, which is not given",
                  search.missing);
    free(search.found);
    return ok;
}
