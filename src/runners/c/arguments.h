/* The command line of docs/runner-contract.md. */

#ifndef TRANSECT_ARGUMENTS_H
#define TRANSECT_ARGUMENTS_H

#include <stdint.h>

#include "failure.h"

enum mode { MODE_LATENCY, MODE_LOAD, MODE_CASES, MODE_TRAIN };
enum provider { PROVIDER_CPU, PROVIDER_CUDA };

/* Texts point into argv; NULL where an argument was not given. */
struct arguments {
    enum mode mode;
    enum provider provider;
    const char *mode_name, *provider_name;
    const char *model, *inputs, *outputs, *options, *library, *record;
    const char *profile, *arrivals, *cases;
    const char *step, *order, *state, *checkpoint, *schedule;
    uint64_t warmup, min_runs, sessions, skip;
    uint64_t batch, until, checkpoint_every, accumulate, seed;
    double max_seconds;
};

/* Fills `record` even where it fails. */
bool arguments_read(int argc, char **argv, struct arguments *given, struct failure *failure);

#endif
