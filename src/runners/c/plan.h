/* What a training is given beside its step: data, hyper-parameters, the order of the rows. */

#ifndef TRANSECT_PLAN_H
#define TRANSECT_PLAN_H

#include "arguments.h"
#include "step.h"

struct schedule {
    yyjson_doc *document; /* NULL: the defaults hold */
};

struct plan {
    struct schedule schedule;
    size_t rows;    /* of the data */
    int64_t *order; /* until x accumulate x batch */
};

/* `inputs` is what `--inputs` holds. */
bool plan_read(const struct arguments *given, const struct step *step, const struct inputs *inputs,
               struct plan *plan, struct failure *failure);
void plan_free(struct plan *plan);

/* The value of a hyper-parameter in a step. */
double plan_value(const struct plan *plan, const struct hyper *hyper, uint64_t step);

/* The tensor of that name among the inputs, NULL when there is none. */
const struct tensor *find_tensor(const struct inputs *inputs, const char *name);

#endif
