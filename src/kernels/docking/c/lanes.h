/* One register of float: the widest that the compiler may use, and what no operator does with it. */
#ifndef TRANSECT_LANES_H
#define TRANSECT_LANES_H

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
typedef float lanes __attribute__((vector_size(64)));
static inline lanes lanes_max(lanes a, lanes b) { return (lanes)_mm512_max_ps((__m512)a, (__m512)b); }
static inline lanes lanes_min(lanes a, lanes b) { return (lanes)_mm512_min_ps((__m512)a, (__m512)b); }
static inline lanes lanes_sqrt(lanes a) { return (lanes)_mm512_sqrt_ps((__m512)a); }
#elif defined(__AVX__)
#include <immintrin.h>
enum { LANES = 8 };
typedef float lanes __attribute__((vector_size(32)));
static inline lanes lanes_max(lanes a, lanes b) { return (lanes)_mm256_max_ps((__m256)a, (__m256)b); }
static inline lanes lanes_min(lanes a, lanes b) { return (lanes)_mm256_min_ps((__m256)a, (__m256)b); }
static inline lanes lanes_sqrt(lanes a) { return (lanes)_mm256_sqrt_ps((__m256)a); }
#else
#include <math.h>
/* Any other machine: four lanes, which the compiler maps to what it has. */
enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(16)));
static inline lanes lanes_max(lanes a, lanes b) {
    lanes r;
    for (int i = 0; i < LANES; ++i)
        r[i] = a[i] > b[i] ? a[i] : b[i];
    return r;
}
static inline lanes lanes_min(lanes a, lanes b) {
    lanes r;
    for (int i = 0; i < LANES; ++i)
        r[i] = a[i] < b[i] ? a[i] : b[i];
    return r;
}
static inline lanes lanes_sqrt(lanes a) {
    lanes r;
    for (int i = 0; i < LANES; ++i)
        r[i] = sqrtf(a[i]);
    return r;
}
#endif

/* Memory of float may be read and written as lanes. */
typedef lanes lanes_at __attribute__((may_alias));

static inline lanes lanes_of(float value) { return (lanes){0} + value; }

#endif
