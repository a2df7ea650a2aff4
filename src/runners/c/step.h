/* A portable training step's folder: docs/portable-training-step.md. */

#ifndef TRANSECT_STEP_H
#define TRANSECT_STEP_H

#include "dtypes.h"
#include "failure.h"
#include "inputs.h"
#include "yyjson.h"

enum graph_kind { GRAPH_STEP, GRAPH_ACCUMULATE, GRAPHS };

enum { ANY_SIZE = -1 };

/* A tensor of the data or of the state. Texts here and below lie in the manifest. */
struct described {
    const char *name;
    const struct dtype *dtype;
    size_t rank;
    int64_t shape[MOST_AXES]; /* ANY_SIZE where the manifest has a name */
    size_t bytes;             /* of the whole tensor: state only */
    const char *next;         /* state only: the output with its next value, NULL: it stays */
};

struct hyper {
    const char *name;
    double value;
};

struct names {
    size_t count;
    const char **texts;
};

struct graph {
    char *file; /* NULL: not used */
    struct names inputs, outputs;
};

struct step {
    yyjson_doc *manifest;
    const char *step_graph, *seed; /* seed: the input's name, NULL where nothing is drawn */
    char *state_file;
    size_t data_count, state_count, hyper_count, metric_count;
    struct described *data, *state, *metrics; /* of the metrics the first is the loss */
    struct hyper *hyper;                      /* with the defaults */
    size_t counter;                           /* which of the state: how many updates are done */
    struct graph graphs[GRAPHS];
};

bool step_read(const char *folder, bool accumulates, struct step *step, struct failure *failure);
void step_free(struct step *step);

bool has_name(const struct names *names, const char *name);

#endif
