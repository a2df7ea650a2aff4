#include "step.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "sha256.h"

static const char *const graph_names[GRAPHS] = {"step", "accumulate"};

static bool wrong(const char *what, yyjson_val *value, const char *expected,
                  struct failure *failure)
{
    char *shown = json_shown(value);
    fail(failure, CAUSE_BAD_INPUT, "%s: expected %s, got %.300s", what, expected,
         shown == NULL ? "?" : shown);
    free(shown);
    return false;
}

static bool read_text(yyjson_val *object, const char *key, const char **text,
                      struct failure *failure)
{
    *text = json_text(yyjson_obj_get(object, key));
    return *text != NULL || wrong(key, object, "a text under this key", failure);
}

/* The dtype, of numbers, and the shape, in which a name stands for any size. */
static bool read_described(yyjson_val *entry, struct described *tensor, struct failure *failure)
{
    const char *dtype;
    yyjson_val *shape = yyjson_obj_get(entry, "shape"), *size;
    if (!read_text(entry, "name", &tensor->name, failure) ||
        !read_text(entry, "dtype", &dtype, failure))
        return false;
    tensor->dtype = dtype_by_name(dtype);
    if (tensor->dtype == NULL || tensor->dtype->size == 0)
        return wrong(tensor->name, entry, "a dtype of numbers", failure);
    if (shape == NULL)
        return true;
    if (!yyjson_is_arr(shape) || yyjson_arr_size(shape) > MOST_AXES)
        return wrong(tensor->name, entry, "a shape of at most 64 axes", failure);
    size_t axis;
    yyjson_arr_foreach(shape, axis, tensor->rank, size) {
        if (!yyjson_is_str(size) && (!yyjson_is_uint(size) || yyjson_get_uint(size) > INT64_MAX))
            return wrong(tensor->name, entry, "sizes >= 0 or names in the shape", failure);
        tensor->shape[axis] = yyjson_is_str(size) ? ANY_SIZE : (int64_t)yyjson_get_uint(size);
    }
    return true;
}

static bool read_state_tensor(yyjson_val *entry, struct described *tensor, struct failure *failure)
{
    if (!yyjson_is_arr(yyjson_obj_get(entry, "shape")))
        return wrong("state", entry, "a shape", failure);
    if (!read_described(entry, tensor, failure))
        return false;
    tensor->bytes = tensor->dtype->size;
    for (size_t axis = 0; axis < tensor->rank; axis++) {
        if (tensor->shape[axis] == ANY_SIZE ||
            __builtin_mul_overflow(tensor->bytes, tensor->shape[axis], &tensor->bytes))
            return wrong(tensor->name, entry, "a shape that memory can hold", failure);
    }
    yyjson_val *next = yyjson_obj_get(entry, "next");
    tensor->next = json_text(next);
    return yyjson_is_null(next) || tensor->next != NULL ||
           wrong(tensor->name, entry, "a text or null as next", failure);
}

static bool read_list(yyjson_val *root, const char *key,
                      bool (*read)(yyjson_val *, struct described *, struct failure *),
                      struct described **list, size_t *count, struct failure *failure)
{
    yyjson_val *entries = yyjson_obj_get(root, key), *entry;
    size_t index, size;
    if (!yyjson_is_arr(entries) || yyjson_arr_size(entries) == 0)
        return wrong(key, entries, "a list that is not empty", failure);
    *list = reserve(yyjson_arr_size(entries), sizeof **list, failure);
    if (*list == NULL)
        return false;
    yyjson_arr_foreach(entries, index, size, entry) {
        if (!read(entry, &(*list)[index], failure))
            return false;
    }
    *count = size;
    return true;
}

static bool read_hyper(yyjson_val *root, struct step *step, struct failure *failure)
{
    yyjson_val *entries = yyjson_obj_get(root, "hyper"), *entry;
    size_t index, count;
    if (!yyjson_is_arr(entries))
        return wrong("hyper", entries, "a list", failure);
    step->hyper = reserve(yyjson_arr_size(entries), sizeof *step->hyper, failure);
    if (step->hyper == NULL)
        return false;
    yyjson_arr_foreach(entries, index, count, entry) {
        yyjson_val *value = yyjson_obj_get(entry, "default");
        if (!yyjson_is_num(value))
            return wrong("hyper", entry, "a number as default", failure);
        step->hyper[index].value = yyjson_get_num(value);
        if (!read_text(entry, "name", &step->hyper[index].name, failure))
            return false;
    }
    step->hyper_count = count;
    return true;
}

static bool find_counter(yyjson_val *root, struct step *step, struct failure *failure)
{
    size_t index, count, found = 0;
    yyjson_val *entries = yyjson_obj_get(root, "state"), *entry;
    yyjson_arr_foreach(entries, index, count, entry) {
        if (yyjson_equals_str(yyjson_obj_get(entry, "role"), "counter")) {
            step->counter = index;
            found++;
        }
    }
    const struct described *counter = &step->state[step->counter];
    return (found == 1 && counter->rank == 0 &&
            counter->dtype->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) ||
           wrong("state", entries, "one counter, an int64 scalar", failure);
}

bool has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->texts[i], name) == 0)
            return true;
    }
    return false;
}

static bool read_names(yyjson_val *list, struct names *names, struct failure *failure)
{
    size_t index, count;
    yyjson_val *entry;
    if (!yyjson_is_arr(list))
        return wrong("graphs", list, "a list of names", failure);
    names->texts = reserve(yyjson_arr_size(list), sizeof *names->texts, failure);
    if (names->texts == NULL)
        return false;
    yyjson_arr_foreach(list, index, count, entry) {
        names->texts[index] = json_text(entry);
        if (names->texts[index] == NULL)
            return wrong("graphs", entry, "a name", failure);
        names->count = index + 1;
    }
    return true;
}

static bool is_input(const struct step *step, const char *name)
{
    bool found = step->seed != NULL && strcmp(step->seed, name) == 0;
    for (size_t i = 0; i < step->data_count; i++)
        found |= strcmp(step->data[i].name, name) == 0;
    for (size_t i = 0; i < step->state_count; i++)
        found |= strcmp(step->state[i].name, name) == 0;
    for (size_t i = 0; i < step->hyper_count; i++)
        found |= strcmp(step->hyper[i].name, name) == 0;
    return found;
}

static bool is_output(const struct step *step, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < step->metric_count; i++)
        found |= strcmp(step->metrics[i].name, name) == 0;
    for (size_t i = 0; i < step->state_count; i++)
        found |= step->state[i].next != NULL && strcmp(step->state[i].next, name) == 0;
    return found;
}

/* Every name is known, and all metrics come out. */
static bool check_graph(const struct step *step, const struct graph *graph,
                        struct failure *failure)
{
    const char *strange = NULL;
    for (size_t i = 0; i < graph->inputs.count; i++)
        strange = is_input(step, graph->inputs.texts[i]) ? strange : graph->inputs.texts[i];
    for (size_t i = 0; i < graph->outputs.count; i++)
        strange = is_output(step, graph->outputs.texts[i]) ? strange : graph->outputs.texts[i];
    if (strange != NULL)
        return fail(failure, CAUSE_BAD_INPUT, "%s: has '%s', which nothing else names",
                    graph->file, strange);
    for (size_t i = 0; i < step->metric_count; i++) {
        if (!has_name(&graph->outputs, step->metrics[i].name))
            return fail(failure, CAUSE_BAD_INPUT, "%s: expected an output '%s'", graph->file,
                        step->metrics[i].name);
    }
    return true;
}

static bool read_graph(const char *folder, yyjson_val *graphs, enum graph_kind kind,
                       struct step *step, struct failure *failure)
{
    struct graph *graph = &step->graphs[kind];
    yyjson_val *entry = yyjson_obj_get(graphs, graph_names[kind]);
    const char *file;
    if (entry == NULL)
        return fail(failure, CAUSE_BAD_INPUT, "the step was made without the graph '%s'",
                    graph_names[kind]);
    if (!read_text(entry, "file", &file, failure))
        return false;
    graph->file = join_path(folder, file, failure);
    return graph->file != NULL &&
           read_names(yyjson_obj_get(entry, "inputs"), &graph->inputs, failure) &&
           read_names(yyjson_obj_get(entry, "outputs"), &graph->outputs, failure) &&
           check_graph(step, graph, failure);
}

/* State files name the step by this sum: one bit altered would train another model in silence. */
static bool check_sum(const struct step *step, struct failure *failure)
{
    const char *file = step->graphs[GRAPH_STEP].file;
    char found[65];
    size_t size;
    if (!file_size(file, &size, failure))
        return false;
    void *bytes = read_file(file, size, failure);
    if (bytes == NULL)
        return false;
    sha256_hex(bytes, size, found);
    free(bytes);
    return strcmp(found, step->step_graph) == 0 ||
           fail(failure, CAUSE_BAD_INPUT, "%s has the sha256 %s, expected %s", file, found,
                step->step_graph);
}

static bool read_seed(yyjson_val *root, struct step *step, struct failure *failure)
{
    yyjson_val *seed = yyjson_obj_get(root, "seed");
    return yyjson_is_null(seed) || read_text(seed, "name", &step->seed, failure);
}

static bool read_metrics(yyjson_val *root, struct step *step, struct failure *failure)
{
    if (!read_list(root, "metrics", read_described, &step->metrics, &step->metric_count, failure))
        return false;
    for (size_t i = 0; i < step->metric_count; i++) {
        ONNXTensorElementDataType type = step->metrics[i].dtype->type;
        if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT &&
            type != ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE)
            return wrong("metrics", yyjson_obj_get(root, "metrics"), "float32 or float64", failure);
    }
    return true;
}

static bool read_manifest(const char *folder, yyjson_val *root, bool accumulates,
                          struct step *step, struct failure *failure)
{
    const char *state_file;
    yyjson_val *graphs = yyjson_obj_get(root, "graphs");
    if (!yyjson_equals_str(yyjson_obj_get(root, "format"), "transect-portable-step") ||
        yyjson_get_uint(yyjson_obj_get(root, "version")) != 1)
        return wrong("format", yyjson_obj_get(root, "version"),
                     "\"transect-portable-step\" of version 1", failure);
    if (!read_text(root, "step_graph", &step->step_graph, failure) ||
        !read_text(root, "state_file", &state_file, failure))
        return false;
    step->state_file = join_path(folder, state_file, failure);
    return step->state_file != NULL && read_seed(root, step, failure) &&
           read_list(root, "data", read_described, &step->data, &step->data_count, failure) &&
           read_hyper(root, step, failure) && read_metrics(root, step, failure) &&
           read_list(root, "state", read_state_tensor, &step->state, &step->state_count,
                     failure) &&
           find_counter(root, step, failure) &&
           read_graph(folder, graphs, GRAPH_STEP, step, failure) && check_sum(step, failure) &&
           (!accumulates || read_graph(folder, graphs, GRAPH_ACCUMULATE, step, failure));
}

bool step_read(const char *folder, bool accumulates, struct step *step, struct failure *failure)
{
    *step = (struct step){0};
    char *file = join_path(folder, "manifest.json", failure);
    struct failure said = {0};
    step->manifest = file == NULL ? NULL : read_json(file, failure);
    bool ok = step->manifest != NULL;
    if (ok && !read_manifest(folder, yyjson_doc_get_root(step->manifest), accumulates, step, &said))
        ok = fail(failure, said.cause, "%s: %.3000s", file, said.message);
    free(file);
    if (!ok)
        step_free(step);
    return ok;
}

void step_free(struct step *step)
{
    for (int kind = 0; kind < GRAPHS; kind++) {
        free(step->graphs[kind].file);
        free(step->graphs[kind].inputs.texts);
        free(step->graphs[kind].outputs.texts);
    }
    free(step->state_file);
    free(step->data);
    free(step->state);
    free(step->metrics);
    free(step->hyper);
    yyjson_doc_free(step->manifest);
    *step = (struct step){0};
}
