/* Runs that are counted or timed, on the inputs of one model. */

#ifndef TRANSECT_MEASURE_H
#define TRANSECT_MEASURE_H

#include "session.h"

/* The first result: the run of the first batch and the facts of it, then all rows, the last partial
   batch included, into the files of the model's outputs. */
void first_results(struct session *session, const struct plan *plan, const struct inputs *inputs);

/* Runs full batches without keeping the times. */
void warm_up(struct session *session, const struct inputs *inputs, uint64_t iterations);

void run_latency(const struct plan *plan);
void run_cases(const struct plan *plan);
void run_load(const struct plan *plan);
void run_train(const struct plan *plan);

#endif
