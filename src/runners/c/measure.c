#include "measure.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"
#include "turns.h"

enum { PROFILED_RUNS = 10 };

static const double INTERVAL_WIDTH = 0.02, GROWTH = 1.25;

/* The times of all iterations. */
struct series {
    struct times *rows;
    size_t count, capacity;
};

static void append(struct series *series, struct times times)
{
    if (series->count == series->capacity) {
        series->capacity = series->capacity == 0 ? 1024 : 2 * series->capacity;
        series->rows = realloc(series->rows, series->capacity * sizeof times);
        if (series->rows == NULL)
            fail(CAUSE_OUT_OF_MEMORY, "no memory for %zu times", series->capacity);
    }
    series->rows[series->count++] = times;
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Whether the 95 % interval of the median, by ranks (J.-Y. Le Boudec, "Performance Evaluation of
   Computer and Communication Systems", 2010, theorem 2.1), is narrow enough. */
static bool is_narrow(const struct series *series)
{
    size_t n = series->count;
    double half = 0.5 * (double)n, spread = 0.98 * sqrt((double)n);
    double low = floor(half - spread), high = ceil(half + 1 + spread);
    if (low < 1 || high > (double)n)
        return false;
    int64_t *sorted = reserve(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = series->rows[i].run_ns;
    qsort(sorted, n, sizeof *sorted, ascending);
    double median = 0.5 * (double)(sorted[(n - 1) / 2] + sorted[n / 2]);
    int64_t width = sorted[(size_t)high - 1] - sorted[(size_t)low - 1];
    free(sorted);
    return (double)width <= INTERVAL_WIDTH * median;
}

void warm_up(struct session *session, const struct inputs *inputs, uint64_t iterations)
{
    for (size_t i = 0; i < iterations; i++)
        session_run(session, inputs, full_batch(inputs, i));
}

/* Fills the series; says why it stopped. */
static const char *measure(struct session *session, const struct plan *plan,
                           const struct inputs *inputs, struct series *series)
{
    size_t next_look = plan->min_runs;
    int64_t deadline_ns = now_ns() + (int64_t)plan->max_ns;
    for (size_t done = 1;; done++) {
        append(series, session_run(session, inputs, full_batch(inputs, done - 1)));
        if (done < plan->min_runs)
            continue;
        if (done >= next_look) {
            next_look = (size_t)ceil((double)done * GROWTH);
            if (is_narrow(series))
                return "interval-reached";
        }
        if (now_ns() >= deadline_ns)
            return "time-limit";
    }
}

/* Fills the series turn by turn; nothing is timed while it waits. */
static const char *take_turns(struct session *session, const struct inputs *inputs,
                              struct series *series, int turns)
{
    for (int64_t left = turns_next(turns, 'r'); left > 0; left = turns_next(turns, 'd'))
        for (; left > 0; left--)
            append(series, session_run(session, inputs, full_batch(inputs, series->count)));
    return "turns";
}

static void profile(const struct plan *plan, const struct inputs *inputs, const char *prefix)
{
    struct session session;
    int64_t runs[PROFILED_RUNS];
    char *file;
    session_open(&session, plan, plan_next(plan, NULL, ROLE_MODEL, ANY_GROUP), prefix);
    for (int i = 0; i < PROFILED_RUNS; i++)
        runs[i] = session_run(&session, inputs, full_batch(inputs, 0)).run_ns;
    check(api->SessionEndProfiling(session.session, runtime.allocator, &file));
    fact_text("profile_file", file);
    write_array("profile_times.bin", runs, sizeof runs);
    session_close(&session);
}

void run_latency(const struct plan *plan)
{
    const struct entry *model = plan_next(plan, NULL, ROLE_MODEL, ANY_GROUP);
    const char *prefix = plan_text(plan, ROLE_PROFILE, ANY_GROUP);
    struct inputs inputs = inputs_open(plan, (int)model->group);
    struct session session;
    struct series series = {0};
    int turns = turns_join();
    session_open(&session, plan, model, NULL);
    first_results(&session, plan, &inputs);
    warm_up(&session, &inputs, plan->warmup);
    const char *stop_reason = turns == NO_TURNS
                                  ? measure(&session, plan, &inputs, &series)
                                  : take_turns(&session, &inputs, &series, turns);
    write_conditions();
    fact_text("stop_reason", stop_reason);
    write_array("times.bin", series.rows, series.count * sizeof *series.rows);
    session_close(&session);
    if (prefix != NULL)
        profile(plan, &inputs, prefix);
}
