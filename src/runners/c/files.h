/* Files, folders and JSON. Every function that returns bool or a pointer fills the failure. */

#ifndef TRANSECT_FILES_H
#define TRANSECT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"
#include "yyjson.h"

bool is_file(const char *path);

/* Whether there is anything of that name. */
bool file_exists(const char *path);

/* Makes a folder and those above it. */
bool make_folder(const char *path, struct failure *failure);

/* Makes the folder that a file is to be in. */
bool make_parent(const char *file, struct failure *failure);

/* `name`, below `folder` unless it is absolute; to be freed. */
char *join_path(const char *folder, const char *name, struct failure *failure);

/* A name beside `path` for what is to be renamed to it; to be freed. */
char *temporary_name(const char *path, struct failure *failure);

/* The size of a regular file in bytes. */
bool file_size(const char *path, size_t *size, struct failure *failure);

/* The `size` bytes of a file, to be freed. */
void *read_file(const char *path, size_t size, struct failure *failure);

/* The document of a JSON file, to be freed by yyjson_doc_free. */
yyjson_doc *read_json(const char *path, struct failure *failure);

/* The text of a JSON value, as it stands in the document; NULL when it is none or holds a NUL. */
const char *json_text(yyjson_val *value);

/* The value as JSON, for messages, to be freed; NULL when there is no memory. */
char *json_shown(yyjson_val *value);

#endif
