#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"

/* The longest header that safetensors itself allows. */
enum { LENGTH_BYTES = 8, LONGEST_HEADER = 100000000 };

struct place {
    uint64_t begin, end;
};

bool state_open(const struct step *step, struct state *state, struct failure *failure)
{
    *state = (struct state){.data = reserve(step->state_count, sizeof *state->data, failure)};
    return state->data != NULL;
}

void state_free(struct state *state)
{
    free(state->file);
    free(state->data);
    *state = (struct state){0};
}

static bool wrong(const char *path, const char *name, yyjson_val *entry, const char *expected,
                  struct failure *failure)
{
    char *shown = json_shown(entry);
    fail(failure, CAUSE_BAD_INPUT, "%s: '%s': expected %s, got %.300s", path, name, expected,
         shown == NULL ? "?" : shown);
    free(shown);
    return false;
}

static bool read_place(const char *path, const char *name, yyjson_val *entry, struct place *place,
                       struct failure *failure)
{
    yyjson_val *offsets = yyjson_obj_get(entry, "data_offsets");
    yyjson_val *begin = yyjson_arr_get(offsets, 0), *end = yyjson_arr_get(offsets, 1);
    *place = (struct place){yyjson_get_uint(begin), yyjson_get_uint(end)};
    return (yyjson_arr_size(offsets) == 2 && yyjson_is_uint(begin) && yyjson_is_uint(end) &&
            place->begin <= place->end) ||
           wrong(path, name, entry, "data_offsets of two numbers", failure);
}

/* Dtype, shape and size are those of the manifest. */
static bool check_tensor(const char *path, const struct described *tensor, yyjson_val *entry,
                         struct place place, struct failure *failure)
{
    yyjson_val *shape = yyjson_obj_get(entry, "shape"), *size;
    bool same = yyjson_equals_str(yyjson_obj_get(entry, "dtype"), tensor->dtype->tag) &&
                yyjson_is_arr(shape) && yyjson_arr_size(shape) == tensor->rank &&
                place.end - place.begin == tensor->bytes;
    size_t axis, axes;
    yyjson_arr_foreach(shape, axis, axes, size) {
        same = same && yyjson_is_uint(size) &&
               yyjson_get_uint(size) == (uint64_t)tensor->shape[axis];
    }
    return same || wrong(path, tensor->name, entry, "the manifest's dtype, shape and size", failure);
}

static int by_place(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* The tensors lie one behind the other and fill the file. */
static bool check_places(const char *path, struct place *places, size_t count, uint64_t size,
                         struct failure *failure)
{
    qsort(places, count, sizeof *places, by_place);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (places[i].begin != end)
            return fail(failure, CAUSE_BAD_INPUT, "%s: expected a tensor at byte %llu, got %llu",
                        path, (unsigned long long)end, (unsigned long long)places[i].begin);
        end = places[i].end;
    }
    return end == size || fail(failure, CAUSE_BAD_INPUT, "%s: the tensors end at byte %llu of %llu",
                               path, (unsigned long long)end, (unsigned long long)size);
}

static size_t find(const struct step *step, const char *name)
{
    size_t index = 0;
    while (index < step->state_count && (name == NULL || strcmp(step->state[index].name, name) != 0))
        index++;
    return index;
}

/* `bytes` is what lies behind the header. */
static bool read_tensors(const char *path, const struct step *step, yyjson_val *header,
                         struct place *places, unsigned char *bytes, size_t size,
                         struct state *state, struct failure *failure)
{
    size_t index, entries, count = 0;
    yyjson_val *key, *entry;
    yyjson_obj_foreach(header, index, entries, key, entry) {
        if (yyjson_equals_str(key, "__metadata__"))
            continue;
        size_t at = find(step, json_text(key));
        if (at == step->state_count || state->data[at] != NULL)
            return wrong(path, yyjson_get_str(key), entry, "each tensor of the manifest once",
                         failure);
        if (!read_place(path, step->state[at].name, entry, &places[count], failure) ||
            !check_tensor(path, &step->state[at], entry, places[count], failure))
            return false;
        state->data[at] = bytes + places[count++].begin;
    }
    for (size_t i = 0; i < step->state_count; i++) {
        if (state->data[i] == NULL)
            return fail(failure, CAUSE_BAD_INPUT, "%s: has no tensor '%s'", path,
                        step->state[i].name);
    }
    return check_places(path, places, count, size, failure);
}

static bool read_header(const char *path, const struct step *step, yyjson_val *header,
                        unsigned char *bytes, size_t size, struct state *state,
                        struct failure *failure)
{
    if (!yyjson_is_obj(header))
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected a JSON object as header", path);
    yyjson_val *metadata = yyjson_obj_get(header, "__metadata__");
    yyjson_val *step_graph = yyjson_obj_get(metadata, "step_graph");
    if (!yyjson_equals_str(step_graph, step->step_graph)) {
        char *shown = json_shown(step_graph);
        fail(failure, CAUSE_BAD_INPUT, "%s: is of the step %.100s, expected %s", path,
             shown == NULL ? "?" : shown, step->step_graph);
        free(shown);
        return false;
    }
    struct place *places = reserve(step->state_count, sizeof *places, failure);
    bool ok = places != NULL &&
              read_tensors(path, step, header, places, bytes, size, state, failure);
    free(places);
    return ok;
}

static bool read_whole(const char *path, const struct step *step, struct state *state,
                       struct failure *failure)
{
    size_t size;
    uint64_t length = 0;
    if (!file_size(path, &size, failure))
        return false;
    state->file = read_file(path, size, failure);
    if (state->file == NULL)
        return false;
    if (size >= LENGTH_BYTES)
        memcpy(&length, state->file, LENGTH_BYTES);
    if (size < LENGTH_BYTES || length > size - LENGTH_BYTES || length > LONGEST_HEADER)
        return fail(failure, CAUSE_BAD_INPUT, "%s: %zu bytes do not hold a header of %llu", path,
                    size, (unsigned long long)length);
    yyjson_read_err error;
    yyjson_doc *header = yyjson_read_opts((char *)state->file + LENGTH_BYTES, (size_t)length,
                                          YYJSON_READ_NOFLAG, NULL, &error);
    if (header == NULL)
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected a header in JSON: %s at byte %zu", path,
                    error.msg, error.pos);
    bool ok = read_header(path, step, yyjson_doc_get_root(header),
                          state->file + LENGTH_BYTES + length,
                          size - LENGTH_BYTES - (size_t)length, state, failure);
    yyjson_doc_free(header);
    return ok;
}

bool state_read(const char *path, const struct step *step, struct state *state,
                struct failure *failure)
{
    bool ok = state_open(step, state, failure) && read_whole(path, step, state, failure);
    const char *name = ok ? state_not_finite(step, state) : NULL;
    if (name != NULL)
        ok = fail(failure, CAUSE_BAD_INPUT, "%s: '%s' holds a number that is not finite", path,
                  name);
    if (!ok)
        state_free(state);
    return ok;
}

/* The bits of an exponent that is all ones: an infinity or a NaN. 0: the type has none. */
static uint64_t exponent_of(const struct dtype *dtype)
{
    switch (dtype->type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        return 0x7C00;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return 0x7F80;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        return 0x7F800000;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return 0x7FF0000000000000;
    default:
        return 0;
    }
}

const char *state_not_finite(const struct step *step, const struct state *state)
{
    for (size_t i = 0; i < step->state_count; i++) {
        const struct described *tensor = &step->state[i];
        uint64_t exponent = exponent_of(tensor->dtype), bits = 0;
        size_t size = tensor->dtype->size;
        for (size_t byte = 0; exponent != 0 && byte < tensor->bytes; byte += size) {
            memcpy(&bits, state->data[i] + byte, size);
            if ((bits & exponent) == exponent)
                return tensor->name;
        }
    }
    return NULL;
}
