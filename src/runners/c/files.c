#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool is_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool file_exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

static bool make_one(const char *path, struct failure *failure)
{
    struct stat facts;
    if (mkdir(path, 0777) == 0)
        return true;
    int error = errno;
    if (error == EEXIST && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return true;
    return fail(failure, CAUSE_CRASH, "%s: cannot make this folder: %s", path, strerror(error));
}

/* Makes the first `length` bytes of a path, folder by folder. */
static bool make_folders(const char *path, size_t length, struct failure *failure)
{
    char *part = strndup(path, length);
    if (part == NULL)
        return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a path");
    bool ok = true;
    for (size_t i = 1; ok && i <= length; i++) {
        if (i < length && part[i] != '/')
            continue;
        part[i] = '\0';
        ok = make_one(part, failure);
        part[i] = path[i];
        if (i == length)
            break;
    }
    free(part);
    return ok;
}

bool make_folder(const char *path, struct failure *failure)
{
    return make_folders(path, strlen(path), failure);
}

bool make_parent(const char *file, struct failure *failure)
{
    const char *slash = strrchr(file, '/');
    return slash == NULL || slash == file || make_folders(file, (size_t)(slash - file), failure);
}

char *join_path(const char *folder, const char *name, struct failure *failure)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = reserve(size, 1, failure);
    if (path != NULL && name[0] == '/')
        strcpy(path, name);
    else if (path != NULL)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

char *temporary_name(const char *path, struct failure *failure)
{
    size_t size = strlen(path) + 32;
    char *name = reserve(size, 1, failure);
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path + 1);
    if (name != NULL)
        snprintf(name, size, "%.*s.%s.%ld", folder, path, path + folder, (long)getpid());
    return name;
}

bool file_size(const char *path, size_t *size, struct failure *failure)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return fail(failure, CAUSE_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected a regular file", path);
    *size = (size_t)facts.st_size;
    return true;
}

void *read_file(const char *path, size_t size, struct failure *failure)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail(failure, CAUSE_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    void *bytes = reserve(size, 1, failure);
    if (bytes != NULL && fread(bytes, 1, size, file) != size) {
        fail(failure, CAUSE_BAD_INPUT, "%s: expected %zu bytes, it ends before", path, size);
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

yyjson_doc *read_json(const char *path, struct failure *failure)
{
    yyjson_read_err error;
    yyjson_doc *document = yyjson_read_file(path, YYJSON_READ_NOFLAG, NULL, &error);
    if (document == NULL)
        fail(failure, CAUSE_BAD_INPUT, "%s: expected a JSON file: %s at byte %zu", path, error.msg,
             error.pos);
    return document;
}

const char *json_text(yyjson_val *value)
{
    const char *text = yyjson_get_str(value);
    return text != NULL && strlen(text) == yyjson_get_len(value) ? text : NULL;
}

char *json_shown(yyjson_val *value)
{
    return value == NULL ? strdup("nothing") : yyjson_val_write(value, YYJSON_WRITE_NOFLAG, NULL);
}
