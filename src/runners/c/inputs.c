#include "inputs.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian");

static bool bad(const char *header, yyjson_val *entry, const char *expected, enum cause cause,
                struct failure *failure)
{
    char *shown = json_shown(entry);
    fail(failure, cause, "%s: %s, got %.300s", header, expected, shown == NULL ? "?" : shown);
    free(shown);
    return false;
}

static bool read_shape(const char *header, yyjson_val *entry, struct tensor *tensor,
                       struct failure *failure)
{
    yyjson_val *shape = yyjson_obj_get(entry, "shape"), *size;
    if (!yyjson_is_arr(shape) || yyjson_arr_size(shape) > MOST_AXES)
        return bad(header, entry, "expected a shape of at most 64 axes", CAUSE_BAD_INPUT, failure);
    size_t axis, axes, product = 1, of_row = 1;
    bool empty = false, overflow = false;
    yyjson_arr_foreach(shape, axis, axes, size) {
        if (!yyjson_is_uint(size) || yyjson_get_uint(size) > INT64_MAX)
            return bad(header, entry, "expected sizes >= 0 in the shape", CAUSE_BAD_INPUT, failure);
        uint64_t entries = yyjson_get_uint(size);
        tensor->shape[axis] = (int64_t)entries;
        empty |= entries == 0;
        overflow |= __builtin_mul_overflow(product, entries, &product);
        if (axis > 0)
            (void)__builtin_mul_overflow(of_row, entries, &of_row);
    }
    if (overflow && !empty)
        return bad(header, entry, "no tensor has that many elements", CAUSE_BAD_INPUT, failure);
    tensor->rank = axes;
    tensor->elements = empty ? 0 : product;
    /* Where an axis is 0 the rest may overflow, and none of it is ever used. */
    tensor->row_elements = empty ? 0 : of_row;
    return true;
}

/* Each text after its length, and nothing else. */
static bool cut_texts(const char *path, size_t size, struct tensor *tensor,
                      struct failure *failure)
{
    size_t place = 0;
    for (size_t i = 0; i < tensor->elements; i++) {
        struct text *text = &tensor->texts[i];
        size_t left = size - place;
        if (left >= sizeof text->size) {
            memcpy(&text->size, tensor->data + place, sizeof text->size);
            place += sizeof text->size;
        }
        if (left < sizeof text->size || size - place < text->size)
            return fail(failure, CAUSE_BAD_INPUT, "%s: tensor '%s': the file ends within string %zu",
                        path, tensor->name, i);
        text->bytes = tensor->data + place;
        place += text->size;
        for (size_t byte = 0, step; byte < text->size; byte += step) {
            step = utf8_character(text->bytes + byte, text->size - byte);
            if (step == 0)
                return fail(failure, CAUSE_BAD_INPUT, "%s: tensor '%s': string %zu is no UTF-8",
                            path, tensor->name, i);
        }
    }
    if (place == size)
        return true;
    return fail(failure, CAUSE_BAD_INPUT, "%s: tensor '%s': %zu bytes are left after %zu strings",
                path, tensor->name, size - place, tensor->elements);
}

static bool read_texts(const char *path, size_t size, struct tensor *tensor,
                       struct failure *failure)
{
    if (tensor->elements > size / sizeof(uint32_t))
        return fail(failure, CAUSE_BAD_INPUT, "%s: holds %zu bytes, tensor '%s' takes >= %zu x %zu",
                    path, size, tensor->name, tensor->elements, sizeof(uint32_t));
    tensor->data = read_file(path, size, failure);
    tensor->texts = tensor->data ? reserve(tensor->elements, sizeof(struct text), failure) : NULL;
    return tensor->texts != NULL && cut_texts(path, size, tensor, failure);
}

static bool read_data(const char *path, struct tensor *tensor, struct failure *failure)
{
    size_t size, wanted;
    if (!file_size(path, &size, failure))
        return false;
    if (tensor->dtype->size == 0)
        return read_texts(path, size, tensor, failure);
    if (__builtin_mul_overflow(tensor->elements, tensor->dtype->size, &wanted) || wanted != size)
        return fail(failure, CAUSE_BAD_INPUT,
                    "%s: holds %zu bytes, expected %zu elements of %s for tensor '%s'", path, size,
                    tensor->elements, tensor->dtype->name, tensor->name);
    tensor->data = read_file(path, size, failure);
    if (tensor->data == NULL)
        return false;
    bool binary = tensor->dtype->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    for (size_t i = 0; binary && i < size; i++) {
        if (tensor->data[i] > 1)
            return fail(failure, CAUSE_BAD_INPUT, "%s: tensor '%s': expected bytes of 0 and 1, got %d",
                        path, tensor->name, tensor->data[i]);
    }
    return true;
}

static bool read_tensor(const char *folder, const char *header, yyjson_val *entry,
                        struct tensor *tensor, struct failure *failure)
{
    const char *name = json_text(yyjson_obj_get(entry, "name"));
    if (name != NULL && yyjson_obj_get(entry, "kind") != NULL)
        return bad(header, entry, "only tensors can be given", CAUSE_UNSUPPORTED, failure);
    const char *dtype = json_text(yyjson_obj_get(entry, "dtype"));
    const char *file = json_text(yyjson_obj_get(entry, "file"));
    if (name == NULL || dtype == NULL || file == NULL)
        return bad(header, entry, "expected tensors with the texts name, dtype and file",
                   CAUSE_BAD_INPUT, failure);
    tensor->dtype = dtype_by_name(dtype);
    if (tensor->dtype == NULL)
        return fail(failure, CAUSE_UNSUPPORTED, "%s: tensor '%s' is %s, expected one of %s", header,
                    name, dtype, dtype_names);
    if (!read_shape(header, entry, tensor, failure))
        return false;
    tensor->name = strdup(name);
    if (tensor->name == NULL)
        return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a name");
    char *path = join_path(folder, file, failure);
    bool ok = path != NULL && read_data(path, tensor, failure);
    free(path);
    return ok;
}

static bool read_tensors(const char *folder, const char *header, yyjson_val *entries,
                         struct inputs *inputs, struct failure *failure)
{
    size_t index, count;
    yyjson_val *entry;
    if (!yyjson_is_arr(entries))
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected {\"tensors\": [...]}", header);
    inputs->tensors = reserve(yyjson_arr_size(entries), sizeof *inputs->tensors, failure);
    if (inputs->tensors == NULL)
        return false;
    yyjson_arr_foreach(entries, index, count, entry) {
        struct tensor *tensor = &inputs->tensors[inputs->count++];
        if (!read_tensor(folder, header, entry, tensor, failure))
            return false;
        for (size_t before = 0; before < index; before++) {
            if (strcmp(inputs->tensors[before].name, tensor->name) == 0)
                return fail(failure, CAUSE_BAD_INPUT, "%s: tensor '%s' is there twice", header,
                            tensor->name);
        }
    }
    return true;
}

static bool read_batch(const char *header, yyjson_val *batch, struct inputs *inputs,
                       struct failure *failure)
{
    if (batch == NULL || yyjson_is_null(batch))
        return true;
    bool fits = yyjson_is_uint(batch) && yyjson_get_uint(batch) >= 1 && inputs->count > 0;
    for (size_t i = 0; fits && i < inputs->count; i++) {
        struct tensor *tensor = &inputs->tensors[i];
        fits = tensor->rank > 0 && tensor->shape[0] == inputs->tensors[0].shape[0] &&
               (uint64_t)tensor->shape[0] >= yyjson_get_uint(batch);
    }
    if (!fits)
        return bad(header, batch, "needs N >= batch >= 1 rows, the same N in every tensor",
                   CAUSE_BAD_INPUT, failure);
    inputs->batch = (size_t)yyjson_get_uint(batch);
    inputs->rows = (size_t)inputs->tensors[0].shape[0];
    return true;
}

bool inputs_read(const char *folder, struct inputs *inputs, struct failure *failure)
{
    *inputs = (struct inputs){0};
    char *header = join_path(folder, "header.json", failure);
    yyjson_doc *document = header == NULL ? NULL : read_json(header, failure);
    yyjson_val *root = yyjson_doc_get_root(document);
    bool ok = document != NULL &&
              read_tensors(folder, header, yyjson_obj_get(root, "tensors"), inputs, failure) &&
              read_batch(header, yyjson_obj_get(root, "batch"), inputs, failure);
    yyjson_doc_free(document);
    free(header);
    if (!ok)
        inputs_free(inputs);
    return ok;
}

void inputs_free(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->tensors[i].name);
        free(inputs->tensors[i].data);
        free(inputs->tensors[i].texts);
    }
    free(inputs->tensors);
    *inputs = (struct inputs){0};
}

size_t full_batches(const struct inputs *inputs)
{
    return inputs->batch == 0 ? 1 : inputs->rows / inputs->batch;
}

struct cut full_batch(const struct inputs *inputs, size_t i)
{
    return (struct cut){i % full_batches(inputs) * inputs->batch, inputs->batch};
}
