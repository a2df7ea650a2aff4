#include "record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "files.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "GCC " __VERSION__
#endif

bool series_append(struct series *series, int64_t value, struct failure *failure)
{
    if (series->count == series->capacity) {
        size_t capacity = series->capacity == 0 ? 1024 : 2 * series->capacity;
        int64_t *values = realloc(series->values, capacity * sizeof *values);
        if (values == NULL)
            return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for %zu times", capacity);
        series->values = values;
        series->capacity = capacity;
    }
    series->values[series->count++] = value;
    return true;
}

void series_free(struct series *series)
{
    free(series->values);
    *series = (struct series){0};
}

bool record_open(struct record *record, const struct arguments *given, struct failure *failure)
{
    record->document = yyjson_mut_doc_new(NULL);
    record->root = yyjson_mut_obj(record->document);
    if (record->root == NULL) {
        record_free(record);
        return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a record");
    }
    yyjson_mut_doc_set_root(record->document, record->root);
    record_text(record, "runner", "c");
    record_text(record, "mode", given->mode_name);
    record_text(record, "provider_requested", given->provider_name);
    return true;
}

void record_free(struct record *record)
{
    yyjson_mut_doc_free(record->document);
    *record = (struct record){0};
}

void record_text(struct record *record, const char *name, const char *text)
{
    yyjson_mut_obj_add_strcpy(record->document, record->root, name, text);
}

void record_number(struct record *record, const char *name, int64_t number)
{
    yyjson_mut_obj_add_sint(record->document, record->root, name, number);
}

void record_series(struct record *record, const char *name, const struct series *series)
{
    /* A pointer to no entries is still to be one. */
    const int64_t *values = series->values == NULL ? &(int64_t){0} : series->values;
    yyjson_mut_obj_add_val(record->document, record->root, name,
                           yyjson_mut_arr_with_sint64(record->document, values, series->count));
}

yyjson_mut_val *record_reals(struct record *record, const double *values, size_t count)
{
    yyjson_mut_val *list = yyjson_mut_arr(record->document);
    for (size_t i = 0; i < count; i++) {
        /* JSON has no other numbers. */
        if (isfinite(values[i]))
            yyjson_mut_arr_add_real(record->document, list, values[i]);
        else
            yyjson_mut_arr_add_null(record->document, list);
    }
    return list;
}

void record_peak_memory(struct record *record)
{
    int64_t bytes;
    if (facts_peak_memory(&bytes))
        record_number(record, "peak_memory_bytes", bytes);
    else
        yyjson_mut_obj_add_null(record->document, record->root, "peak_memory_bytes");
}

/* Which options are set, and which are not: the provider `cpu` has no options of its own. */
static void record_options(struct record *record, const struct options *options,
                           enum provider provider)
{
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_mut_doc *document = record->document;
    yyjson_val *left_out = provider == PROVIDER_CPU ? options_of_provider(options) : NULL;
    yyjson_mut_val *set = yyjson_mut_obj_add_obj(document, record->root, "session_options");
    yyjson_obj_foreach(options->values, index, count, key, value) {
        if (!yyjson_is_null(value) && value != left_out)
            yyjson_mut_obj_add(set, yyjson_val_mut_copy(document, key),
                               yyjson_val_mut_copy(document, value));
    }
    yyjson_mut_val *not_set = yyjson_mut_obj_add_arr(document, record->root, "options_not_set");
    if (yyjson_obj_size(left_out) > 0)
        yyjson_mut_arr_add_str(document, not_set, "provider_options");
}

void record_conditions(struct record *record, const struct runtime *runtime,
                       const struct options *options, const struct arguments *given)
{
    char text[4096];
    record_text(record, "runtime_version", runtime->version);
    record_text(record, "build_info", runtime->api->GetBuildInfoString());
    record_text(record, "language_version", "C11, " COMPILER);
    record_text(record, "provider_used", given->provider_name);
    record_options(record, options, given->provider);
    yyjson_mut_obj_add_arr(record->document, record->root, "run_includes");
    record_text(record, "input_residency", "host");
    if (facts_allowed_cpus(text, sizeof text))
        record_text(record, "cpus_allowed", text);
    if (facts_mapped_file(runtime->address, text, sizeof text))
        record_text(record, "library_file", text);
}

bool record_outputs(struct record *record, const char *folder, const struct inputs *inputs,
                    struct failure *failure)
{
    char *header = join_path(folder, "header.json", failure);
    if (header == NULL)
        return false;
    yyjson_mut_val *outputs = yyjson_mut_obj_add_obj(record->document, record->root, "outputs");
    yyjson_mut_obj_add_strcpy(record->document, outputs, "header", header);
    if (inputs->batch > 0)
        yyjson_mut_obj_add_uint(record->document, outputs, "rows", inputs->rows);
    else
        yyjson_mut_obj_add_null(record->document, outputs, "rows");
    free(header);
    return true;
}

bool record_write(struct record *record, const char *path, struct failure *failure)
{
    if (!make_parent(path, failure))
        return false;
    char *temporary = temporary_name(path, failure);
    if (temporary == NULL)
        return false;
    yyjson_write_err error = {.msg = ""};
    bool ok = yyjson_mut_write_file(temporary, record->document, YYJSON_WRITE_NOFLAG, NULL, &error);
    if (!ok)
        fail(failure, CAUSE_CRASH, "--record %s: cannot be written: %s", path, error.msg);
    else if (rename(temporary, path) != 0)
        ok = fail(failure, CAUSE_CRASH, "--record %s: cannot be written: %s", path,
                  strerror(errno));
    if (!ok)
        unlink(temporary);
    free(temporary);
    return ok;
}
