#include "outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

/* One output's file while it grows. */
struct written {
    FILE *file;
    char name[32];
    const struct dtype *dtype;
    size_t rank;
    int64_t shape[MOST_AXES];
};

static bool open_file(const char *folder, size_t index, const struct output *output,
                      struct written *written, struct failure *failure)
{
    snprintf(written->name, sizeof written->name, "output-%zu.bin", index);
    char *path = join_path(folder, written->name, failure);
    if (path == NULL)
        return false;
    written->file = fopen(path, "wb");
    if (written->file == NULL)
        fail(failure, CAUSE_CRASH, "%s: cannot be written: %s", path, strerror(errno));
    free(path);
    written->dtype = output->dtype;
    written->rank = output->rank;
    memcpy(written->shape, output->shape, output->rank * sizeof *output->shape);
    if (written->rank > 0)
        written->shape[0] = 0;
    return written->file != NULL;
}

static bool write_strings(const struct output *output, FILE *file)
{
    for (size_t i = 0; i < output->elements; i++) {
        size_t end = i + 1 < output->elements ? output->offsets[i + 1] : output->bytes;
        uint32_t size = (uint32_t)(end - output->offsets[i]);
        if (fwrite(&size, sizeof size, 1, file) != 1 ||
            fwrite(output->data + output->offsets[i], 1, size, file) != size)
            return false;
    }
    return true;
}

static bool bad_shape(const struct output *output, size_t rows, struct failure *failure)
{
    char shape[256] = "";
    size_t length = 0;
    for (size_t axis = 0; axis < output->rank && length < sizeof shape; axis++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%lld",
                                   axis > 0 ? "," : "", (long long)output->shape[axis]);
    return fail(failure, CAUSE_BAD_INPUT,
                "output '%s' has shape [%s], expected a first axis of %zu and otherwise one shape "
                "and type for every batch", output->name, shape, rows);
}

/* `rows`: how many entries the first axis must have, 0 for any. */
static bool append(const struct output *output, size_t rows, struct written *written,
                   struct failure *failure)
{
    bool fits = output->dtype == written->dtype && output->rank == written->rank &&
                (rows == 0 || (output->rank > 0 && output->shape[0] == (int64_t)rows));
    for (size_t axis = 1; fits && axis < output->rank; axis++)
        fits = output->shape[axis] == written->shape[axis];
    if (!fits)
        return bad_shape(output, rows, failure);
    if (output->rank > 0)
        written->shape[0] += output->shape[0];
    bool ok = output->dtype->size == 0
                  ? write_strings(output, written->file)
                  : fwrite(output->data, 1, output->bytes, written->file) == output->bytes;
    return ok || fail(failure, CAUSE_CRASH, "%s: cannot be written: %s", written->name,
                      strerror(errno));
}

static bool append_all(const struct session *session, const char *folder, struct cut cut,
                       struct written *written, struct failure *failure)
{
    for (size_t i = 0; i < session->output_count; i++) {
        const struct output *output = &session->outputs[i];
        bool opened = written[i].file != NULL;
        if (cut.first > 0 && opened != (output->dtype != NULL))
            return fail(failure, CAUSE_BAD_INPUT, "output '%s': a tensor for some batches only",
                        output->name);
        if (output->dtype == NULL)
            continue;
        if (!opened && !open_file(folder, i, output, &written[i], failure))
            return false;
        if (!append(output, cut.rows, &written[i], failure))
            return false;
    }
    return true;
}

static bool run_all(struct session *session, const struct inputs *inputs, const char *folder,
                    struct written *written, struct failure *failure)
{
    struct times times;
    struct cut cut = {0, 0};
    do {
        if (inputs->batch > 0) {
            size_t left = inputs->rows - cut.first;
            cut.rows = left < inputs->batch ? left : inputs->batch;
        }
        if (!session_run(session, inputs, cut, &times, failure) ||
            !append_all(session, folder, cut, written, failure))
            return false;
        cut.first += cut.rows;
    } while (cut.first < inputs->rows);
    return true;
}

static bool write_header(const struct session *session, const struct written *written,
                         const char *folder, struct failure *failure)
{
    yyjson_mut_doc *document = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(document);
    yyjson_mut_val *tensors = yyjson_mut_obj_add_arr(document, root, "tensors");
    yyjson_mut_doc_set_root(document, root);
    for (size_t i = 0; i < session->output_count; i++) {
        yyjson_mut_val *entry = yyjson_mut_arr_add_obj(document, tensors);
        yyjson_mut_obj_add_str(document, entry, "name", session->outputs[i].name);
        if (written[i].file == NULL) {
            yyjson_mut_obj_add_str(document, entry, "kind", session->outputs[i].kind);
            continue;
        }
        yyjson_mut_val *shape =
            yyjson_mut_arr_with_sint64(document, written[i].shape, written[i].rank);
        yyjson_mut_obj_add_str(document, entry, "dtype", written[i].dtype->name);
        yyjson_mut_obj_add_val(document, entry, "shape", shape);
        yyjson_mut_obj_add_str(document, entry, "file", written[i].name);
    }
    yyjson_write_err error = {.msg = "no memory"};
    char *path = join_path(folder, "header.json", failure);
    bool ok = path != NULL && (yyjson_mut_write_file(path, document, YYJSON_WRITE_NOFLAG, NULL,
                                                     &error) ||
                               fail(failure, CAUSE_CRASH, "%s: cannot be written: %s", path,
                                    error.msg));
    free(path);
    yyjson_mut_doc_free(document);
    return ok;
}

bool outputs_write(struct session *session, const struct inputs *inputs, const char *folder,
                   struct failure *failure)
{
    struct written *written = reserve(session->output_count, sizeof *written, failure);
    bool ok = written != NULL && make_folder(folder, failure) &&
              run_all(session, inputs, folder, written, failure);
    for (size_t i = 0; written != NULL && i < session->output_count; i++) {
        if (written[i].file != NULL && fclose(written[i].file) != 0 && ok)
            ok = fail(failure, CAUSE_CRASH, "%s: cannot be written: %s", written[i].name,
                      strerror(errno));
    }
    ok = ok && write_header(session, written, folder, failure);
    free(written);
    return ok;
}
