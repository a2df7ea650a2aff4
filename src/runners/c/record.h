/* The record of a run: one JSON object. */

#ifndef TRANSECT_RECORD_H
#define TRANSECT_RECORD_H

#include <stdint.h>

#include "arguments.h"
#include "inputs.h"
#include "options.h"
#include "runtime.h"

/* A growing list of nanoseconds. */
struct series {
    int64_t *values;
    size_t count, capacity;
};

bool series_append(struct series *series, int64_t value, struct failure *failure);
void series_free(struct series *series);

/* Fields are named by literals; other texts are copied. Where memory ends, `record_write` says
   so. */
struct record {
    yyjson_mut_doc *document;
    yyjson_mut_val *root;
};

bool record_open(struct record *record, const struct arguments *given, struct failure *failure);
void record_free(struct record *record);
void record_text(struct record *record, const char *name, const char *text);
void record_number(struct record *record, const char *name, int64_t number);
void record_series(struct record *record, const char *name, const struct series *series);

/* A list of numbers, null for one that is not finite; to be added to the record. */
yyjson_mut_val *record_reals(struct record *record, const double *values, size_t count);

/* What the runtime, the session options and the process are. */
void record_conditions(struct record *record, const struct runtime *runtime,
                       const struct options *options, const struct arguments *given);

/* How much memory the process has taken up to now, before series are copied into the record. */
void record_peak_memory(struct record *record);

/* Where the outputs are. */
bool record_outputs(struct record *record, const char *folder, const struct inputs *inputs,
                    struct failure *failure);

/* Writes to a temporary name and renames; makes the folder. */
bool record_write(struct record *record, const char *path, struct failure *failure);

#endif
