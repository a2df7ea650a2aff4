#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

static const double INTERVAL_WIDTH = 0.02, GROWTH = 1.25;

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Whether the 95 % interval of the median, by ranks (J.-Y. Le Boudec, "Performance Evaluation of
   Computer and Communication Systems", 2010, theorem 2.1), is narrow enough. */
static bool is_narrow(const struct series *series, bool *narrow, struct failure *failure)
{
    size_t n = series->count;
    double half = 0.5 * (double)n, spread = 0.98 * sqrt((double)n);
    double low = floor(half - spread), high = ceil(half + 1 + spread);
    *narrow = false;
    if (low < 1 || high > (double)n)
        return true;
    int64_t *sorted = reserve(n, sizeof *sorted, failure);
    if (sorted == NULL)
        return false;
    memcpy(sorted, series->values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    double median = 0.5 * (double)(sorted[(n - 1) / 2] + sorted[n / 2]);
    int64_t width = sorted[(size_t)high - 1] - sorted[(size_t)low - 1];
    *narrow = (double)width <= INTERVAL_WIDTH * median;
    free(sorted);
    return true;
}

bool warm_up(struct session *session, const struct inputs *inputs, uint64_t iterations,
             struct failure *failure)
{
    struct times times;
    bool ok = true;
    for (size_t i = 0; ok && i < iterations; i++)
        ok = session_run(session, inputs, full_batch(inputs, i), &times, failure);
    return ok;
}

/* Fills the three series; says why it stopped. NULL and a failure when it could not go on. */
static const char *iterate(struct session *session, const struct inputs *inputs,
                           const struct arguments *given, struct series parts[3],
                           struct failure *failure)
{
    size_t next_look = given->min_runs;
    int64_t deadline_ns = now_ns() + (int64_t)(fmin(given->max_seconds, 1e9) * NANO);
    for (size_t done = 1;; done++) {
        struct times times;
        if (!session_run(session, inputs, full_batch(inputs, done - 1), &times, failure) ||
            !series_append(&parts[0], times.bind_ns, failure) ||
            !series_append(&parts[1], times.run_ns, failure) ||
            !series_append(&parts[2], times.copy_ns, failure))
            return NULL;
        if (done < given->min_runs)
            continue;
        if (done >= next_look) {
            bool narrow;
            next_look = (size_t)ceil((double)done * GROWTH);
            if (!is_narrow(&parts[1], &narrow, failure))
                return NULL;
            if (narrow)
                return "interval-reached";
        }
        if (now_ns() >= deadline_ns)
            return "time-limit";
    }
}

bool measure(struct session *session, const struct inputs *inputs, const struct arguments *given,
             struct record *record, struct failure *failure)
{
    static const char *const names[] = {"bind_ns", "run_ns", "copy_ns"};
    struct series parts[3] = {0};
    const char *stop = iterate(session, inputs, given, parts, failure);
    record_peak_memory(record);
    for (int i = 0; i < 3; i++) {
        if (stop != NULL)
            record_series(record, names[i], &parts[i]);
        series_free(&parts[i]);
    }
    if (stop != NULL)
        record_text(record, "stop_reason", stop);
    return stop != NULL;
}
