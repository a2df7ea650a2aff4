/* The session options of docs/runner-contract.md. */

#ifndef TRANSECT_OPTIONS_H
#define TRANSECT_OPTIONS_H

#include "runtime.h"
#include "yyjson.h"

/* A checked JSON object; `values` is NULL where no file was given. */
struct options {
    yyjson_doc *document;
    yyjson_val *values;
};

/* `path` may be NULL: nothing is set. */
bool options_read(const char *path, struct options *options, struct failure *failure);
void options_free(struct options *options);

/* Sets what is set, except `provider_options`. */
bool options_apply(const struct options *options, const struct runtime *runtime,
                   OrtSessionOptions *session_options, struct failure *failure);

/* The object `provider_options`, NULL when it is not set. */
yyjson_val *options_of_provider(const struct options *options);

#endif
