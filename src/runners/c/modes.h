/* The four modes. Each does its work and fills the record; `cases` writes lines of its own. */

#ifndef TRANSECT_MODES_H
#define TRANSECT_MODES_H

#include "arguments.h"
#include "inputs.h"
#include "options.h"
#include "record.h"
#include "runtime.h"

bool run_latency(const struct runtime *runtime, const struct arguments *given,
                 const struct options *options, const struct inputs *inputs,
                 struct record *record, struct failure *failure);

bool run_load(const struct runtime *runtime, const struct arguments *given,
              const struct options *options, const struct inputs *inputs, struct record *record,
              struct failure *failure);

bool run_train(const struct runtime *runtime, const struct arguments *given,
               const struct options *options, const struct inputs *inputs, struct record *record,
               struct failure *failure);

bool run_cases(const struct runtime *runtime, const struct arguments *given,
               const struct options *options, struct failure *failure);

#endif
