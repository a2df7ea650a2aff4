#ifndef TRANSECT_CLOCK_H
#define TRANSECT_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { NANO = 1000000000 };

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * NANO + time.tv_nsec;
}

#endif
