/* The sessions of a training step, and its state on the provider's device. */

#ifndef TRANSECT_TRAINER_H
#define TRANSECT_TRAINER_H

#include "plan.h"
#include "session.h"
#include "state.h"

/* A tensor of the state. Where a step changes it, there are two buffers that change places: what
   is read is in `place`, what is written in the other one. */
struct buffer {
    OrtValue *values[2];
    int place;
};

/* A value over memory of the program's own: a batch's rows, a hyper-parameter, a metric. */
struct lent {
    const char *name;
    OrtValue *value;
    unsigned char *bytes;
    const struct tensor *from; /* data: all rows */
};

struct trainer {
    const struct runtime *runtime;
    const struct step *step;
    size_t batch;
    struct session sessions[GRAPHS];
    OrtAllocator *allocator; /* of the device */
    struct buffer *buffers;
    /* A binding for each way in which the buffers may lie: by how often, modulo 2, each of the
       graphs has run. Made when it first comes. */
    OrtIoBinding *bindings[GRAPHS][2][2];
    int turns[GRAPHS];
    struct lent *data, *hyper, *metrics, seed;
    struct state host; /* of the checkpoint; bytes of its own where the device is no host */
};

bool trainer_open(const struct runtime *runtime, const struct arguments *given,
                  const struct options *options, const struct step *step,
                  const struct inputs *inputs, const struct state *state, struct trainer *trainer,
                  struct failure *failure);
void trainer_close(struct trainer *trainer);

/* Copies the rows of the order into the batch. */
void trainer_gather(struct trainer *trainer, const int64_t *order);

/* Puts the hyper-parameters of a step where they are read. */
void trainer_set(struct trainer *trainer, const struct plan *plan, uint64_t step);

/* Binds and runs a graph; its metrics are then there, and the state is the next one. */
bool trainer_run(struct trainer *trainer, enum graph_kind kind, int64_t *bind_ns, int64_t *run_ns,
                 struct failure *failure);

double trainer_metric(const struct trainer *trainer, size_t index);

/* The state in host memory, until the next run; NULL and a failure when it cannot be had. */
const struct state *trainer_state(struct trainer *trainer, struct failure *failure);

#endif
