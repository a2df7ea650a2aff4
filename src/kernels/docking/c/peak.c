/* The most that the threads of this machine can multiply and add: `peak THREADS` prints GFLOP/s in float32.
 * Chains that do not wait for each other fill the units; nothing is read from memory. */
#define _POSIX_C_SOURCE 199309L
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lanes.h"

enum { CHAINS = 12, ROUNDS = 1000000, TRIES = 200 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **words) {
    const int threads = count > 1 ? atoi(words[1]) : 1;
    if (threads < 1) {
        fprintf(stderr, "error: expected a number of threads, found '%s'\n", words[1]);
        return 2;
    }
    double best = 0.0, sink = 0.0;
    for (int attempt = 0; attempt < TRIES; ++attempt) {
        const double start = now();
#pragma omp parallel num_threads(threads) reduction(+ : sink)
        {
            lanes chain[CHAINS];
            for (int i = 0; i < CHAINS; ++i)
                chain[i] = lanes_of((float)i);
            const lanes factor = lanes_of(0.999f), term = lanes_of(0.001f);
            for (long round = 0; round < ROUNDS; ++round) {
#pragma GCC unroll 12
                for (int i = 0; i < CHAINS; ++i)
                    chain[i] = chain[i] * factor + term;
            }
            for (int i = 0; i < CHAINS; ++i)
                sink += chain[i][0];
        }
        const double seconds = now() - start;
        const double rate = 2.0 * CHAINS * LANES * (double)ROUNDS * threads / seconds * 1e-9;
        best = rate > best ? rate : best;
    }
    printf("peak %.3f GFLOP/s with %d threads (%g)\n", best, threads, sink);
    return 0;
}
