#include <stdlib.h>

#include "clock.h"
#include "measure.h"
#include "modes.h"
#include "outputs.h"

enum { PROFILED_RUNS = 10 };

static bool profile(const struct runtime *runtime, const struct arguments *given,
                    const struct options *options, const struct inputs *inputs,
                    struct record *record, struct failure *failure)
{
    struct session session;
    if (!session_open(runtime, given->model, given->provider, options, given->profile, &session,
                      failure))
        return false;
    struct series runs = {0};
    bool ok = true;
    for (int i = 0; ok && i < PROFILED_RUNS; i++) {
        struct times times;
        ok = session_run(&session, inputs, full_batch(inputs, 0), &times, failure) &&
             series_append(&runs, times.run_ns, failure);
    }
    char *file = ok ? session_end_profile(&session, failure) : NULL;
    if (file != NULL) {
        record_series(record, "profile_run_ns", &runs);
        record_text(record, "profile_file", file);
    }
    ok = file != NULL;
    free(file);
    series_free(&runs);
    session_close(&session);
    return ok;
}

bool run_latency(const struct runtime *runtime, const struct arguments *given,
                 const struct options *options, const struct inputs *inputs,
                 struct record *record, struct failure *failure)
{
    struct session session;
    struct times times;
    if (!session_open(runtime, given->model, given->provider, options, NULL, &session, failure))
        return false;
    record_number(record, "session_ns", session.created_ns);
    bool ok = session_takes(&session, inputs, failure) &&
              session_run(&session, inputs, full_batch(inputs, 0), &times, failure);
    if (ok)
        record_number(record, "first_result_ns", now_ns());
    ok = ok && outputs_write(&session, inputs, given->outputs, failure) &&
         warm_up(&session, inputs, given->warmup, failure) &&
         measure(&session, inputs, given, record, failure) &&
         record_outputs(record, given->outputs, inputs, failure);
    session_close(&session);
    return ok && (given->profile == NULL ||
                  profile(runtime, given, options, inputs, record, failure));
}
