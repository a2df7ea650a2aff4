/* Writing a state file: docs/portable-training-step.md says its every byte. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "state.h"

/* The header without the spaces at its end; to be freed. */
static char *header_text(const struct step *step, size_t *length, struct failure *failure)
{
    yyjson_mut_doc *document = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(document);
    yyjson_mut_doc_set_root(document, root);
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(document, root, "__metadata__");
    yyjson_mut_obj_add_str(document, metadata, "step_graph", step->step_graph);
    size_t end = 0;
    for (size_t i = 0; i < step->state_count; i++) {
        const struct described *tensor = &step->state[i];
        yyjson_mut_val *entry = yyjson_mut_obj_add_obj(document, root, tensor->name);
        yyjson_mut_obj_add_str(document, entry, "dtype", tensor->dtype->tag);
        yyjson_mut_obj_add_val(document, entry, "shape",
                               yyjson_mut_arr_with_sint64(document, tensor->shape, tensor->rank));
        yyjson_mut_val *offsets = yyjson_mut_obj_add_arr(document, entry, "data_offsets");
        yyjson_mut_arr_add_uint(document, offsets, end);
        end += tensor->bytes;
        yyjson_mut_arr_add_uint(document, offsets, end);
    }
    char *text = yyjson_mut_write(document, YYJSON_WRITE_NOFLAG, length);
    yyjson_mut_doc_free(document);
    if (text == NULL)
        fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for the header of a state");
    return text;
}

static bool write_all(int file, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > 0) {
        ssize_t written = write(file, from, count);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            from += written;
            count -= (size_t)written;
        }
    }
    return true;
}

static bool write_content(int file, const struct step *step, const struct state *state,
                          const char *text, size_t length)
{
    static const char spaces[8] = "        ";
    size_t padding = -length % sizeof spaces;
    uint64_t whole = length + padding;
    bool ok = write_all(file, &whole, sizeof whole) && write_all(file, text, length) &&
              write_all(file, spaces, padding);
    for (size_t i = 0; ok && i < step->state_count; i++)
        ok = write_all(file, state->data[i], step->state[i].bytes);
    return ok && fsync(file) == 0;
}

/* Makes a rename within the folder of `path` last. */
static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path + 1);
    char *folder = slash == NULL ? strdup(".") : strndup(path, length);
    int descriptor = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY);
    free(folder);
    bool ok = descriptor >= 0 && fsync(descriptor) == 0;
    int error = errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = error;
    return ok;
}

/* What fails leaves its reason in errno. */
static bool write_file(const char *path, const char *temporary, const struct step *step,
                       const struct state *state, const char *text, size_t length)
{
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return false;
    bool ok = write_content(file, step, state, text, length);
    int error = errno;
    bool closed = close(file) == 0;
    if (!ok)
        errno = error;
    return ok && closed && rename(temporary, path) == 0 && sync_folder(path);
}

/* A process of this number is there. */
static bool runs(const char *number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.32s", number);
    return file_exists(path);
}

void state_remove_left(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    size_t length = strlen(name);
    char *parent = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path + 1));
    DIR *folder = parent == NULL ? NULL : opendir(parent);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const char *file = entry->d_name, *number = file + length + 2;
        if (file[0] == '.' && strncmp(file + 1, name, length) == 0 && file[length + 1] == '.' &&
            *number != '\0' && number[strspn(number, "0123456789")] == '\0' && !runs(number))
            unlinkat(dirfd(folder), file, 0);
    }
    if (folder != NULL)
        closedir(folder);
    free(parent);
}

bool state_write(const char *path, const struct step *step, const struct state *state,
                 struct failure *failure)
{
    size_t length = 0;
    if (!make_parent(path, failure))
        return false;
    char *temporary = temporary_name(path, failure);
    char *text = temporary == NULL ? NULL : header_text(step, &length, failure);
    bool ok = text != NULL;
    if (ok && !write_file(path, temporary, step, state, text, length)) {
        ok = fail(failure, CAUSE_CRASH, "--checkpoint %s: cannot be written: %s", path,
                  strerror(errno));
        unlink(temporary);
    }
    free(temporary);
    free(text);
    return ok;
}
