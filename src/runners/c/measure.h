/* Iterations until the median is known well. */

#ifndef TRANSECT_MEASURE_H
#define TRANSECT_MEASURE_H

#include "arguments.h"
#include "record.h"
#include "session.h"

/* Runs full batches without keeping the times. */
bool warm_up(struct session *session, const struct inputs *inputs, uint64_t iterations,
             struct failure *failure);

/* Times iterations; puts their parts, why it stopped and the memory taken until then into the
   record. */
bool measure(struct session *session, const struct inputs *inputs, const struct arguments *given,
             struct record *record, struct failure *failure);

#endif
