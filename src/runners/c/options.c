#include "options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

enum kind { KIND_WHOLE, KIND_FLAG, KIND_CHOICE, KIND_TEXTS, KIND_TEXT };

/* An option by name. `choices` has the words of a choice, `numbers` what ONNX Runtime calls them. */
struct option {
    const char *name;
    enum kind kind;
    const char *choices[5];
    int numbers[4];
};

static const struct option known[] = {
    {"intra_op_num_threads", KIND_WHOLE, {0}, {0}},
    {"inter_op_num_threads", KIND_WHOLE, {0}, {0}},
    {"execution_mode", KIND_CHOICE, {"sequential", "parallel"}, {ORT_SEQUENTIAL, ORT_PARALLEL}},
    {"graph_optimization_level", KIND_CHOICE, {"disabled", "basic", "extended", "all"},
     {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL}},
    {"enable_cpu_mem_arena", KIND_FLAG, {0}, {0}},
    {"enable_mem_pattern", KIND_FLAG, {0}, {0}},
    {"provider_options", KIND_TEXTS, {0}, {0}},
};

static const struct option entry = {"a configuration entry", KIND_TEXT, {0}, {0}};

static const struct option *find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    }
    return strchr(name, '.') != NULL ? &entry : NULL;
}

/* What ONNX Runtime calls a choice; -1 when it is none of them. */
static int chosen(const struct option *option, yyjson_val *value)
{
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (yyjson_equals_str(value, option->choices[i]))
            return option->numbers[i];
    }
    return -1;
}

static bool all_texts(yyjson_val *object)
{
    size_t index, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(object))
        return false;
    yyjson_obj_foreach(object, index, count, key, value) {
        if (json_text(key) == NULL || json_text(value) == NULL)
            return false;
    }
    return true;
}

/* What was expected instead of a value; NULL when it is good. */
static const char *expected(const struct option *option, yyjson_val *value)
{
    switch (option->kind) {
    case KIND_WHOLE:
        return yyjson_is_uint(value) && yyjson_get_uint(value) <= INT_MAX ? NULL
                                                                          : "a whole number >= 0";
    case KIND_FLAG:
        return yyjson_is_bool(value) ? NULL : "true or false";
    case KIND_TEXTS:
        return all_texts(value) ? NULL : "an object of texts";
    case KIND_TEXT:
        return json_text(value) != NULL ? NULL : "a text";
    case KIND_CHOICE:
        break;
    }
    if (chosen(option, value) >= 0)
        return NULL;
    return option->choices[2] == NULL ? "one of sequential, parallel"
                                      : "one of disabled, basic, extended, all";
}

static bool check(const char *path, yyjson_val *key, yyjson_val *value, struct failure *failure)
{
    const char *name = json_text(key);
    const struct option *option = name == NULL ? NULL : find(name);
    const char *wanted =
        option == NULL ? "execution_mode, graph_optimization_level, intra_op_num_threads, "
                         "inter_op_num_threads, enable_cpu_mem_arena, enable_mem_pattern, "
                         "provider_options or a name with a dot"
                       : expected(option, value);
    if (wanted == NULL)
        return true;
    char *shown = json_shown(value);
    fail(failure, CAUSE_BAD_INPUT, "%s: option '%s' is %.300s, expected %s", path,
         name == NULL ? "?" : name, shown == NULL ? "?" : shown, wanted);
    free(shown);
    return false;
}

bool options_read(const char *path, struct options *options, struct failure *failure)
{
    *options = (struct options){0};
    if (path == NULL)
        return true;
    options->document = read_json(path, failure);
    if (options->document == NULL)
        return false;
    options->values = yyjson_doc_get_root(options->document);
    bool ok = yyjson_is_obj(options->values);
    if (!ok)
        fail(failure, CAUSE_BAD_INPUT, "%s: expected a JSON object", path);
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(options->values, index, count, key, value) {
        ok = ok && (yyjson_is_null(value) || check(path, key, value, failure));
    }
    if (!ok)
        options_free(options);
    return ok;
}

void options_free(struct options *options)
{
    yyjson_doc_free(options->document);
    *options = (struct options){0};
}

static OrtStatus *apply(const OrtApi *api, const char *name, yyjson_val *value,
                        OrtSessionOptions *to)
{
    bool on = yyjson_get_bool(value);
    if (strchr(name, '.') != NULL)
        return api->AddSessionConfigEntry(to, name, yyjson_get_str(value));
    if (strcmp(name, "intra_op_num_threads") == 0)
        return api->SetIntraOpNumThreads(to, (int)yyjson_get_uint(value));
    if (strcmp(name, "inter_op_num_threads") == 0)
        return api->SetInterOpNumThreads(to, (int)yyjson_get_uint(value));
    if (strcmp(name, "execution_mode") == 0)
        return api->SetSessionExecutionMode(to, (ExecutionMode)chosen(find(name), value));
    if (strcmp(name, "graph_optimization_level") == 0)
        return api->SetSessionGraphOptimizationLevel(
            to, (GraphOptimizationLevel)chosen(find(name), value));
    if (strcmp(name, "enable_cpu_mem_arena") == 0)
        return on ? api->EnableCpuMemArena(to) : api->DisableCpuMemArena(to);
    if (strcmp(name, "enable_mem_pattern") == 0)
        return on ? api->EnableMemPattern(to) : api->DisableMemPattern(to);
    return NULL; /* provider_options */
}

bool options_apply(const struct options *options, const struct runtime *runtime,
                   OrtSessionOptions *session_options, struct failure *failure)
{
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(options->values, index, count, key, value) {
        if (yyjson_is_null(value))
            continue;
        OrtStatus *status = apply(runtime->api, yyjson_get_str(key), value, session_options);
        if (!succeeded(runtime, status, failure))
            return false;
    }
    return true;
}

yyjson_val *options_of_provider(const struct options *options)
{
    yyjson_val *found = yyjson_obj_get(options->values, "provider_options");
    return yyjson_is_null(found) ? NULL : found;
}
