/* Mode `train`: a portable training step, from a state to a state. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "files.h"
#include "modes.h"
#include "trainer.h"

enum part { GATHER, BIND, RUN, READ, PARTS };

/* What the record has of the steps until now, `count` of them. */
struct progress {
    uint64_t first;
    size_t count;
    int64_t *times[PARTS];
    double **metrics;
    struct series checkpoint_steps, checkpoint_times;
};

struct training {
    const struct arguments *given;
    const struct step *step;
    const struct plan *plan;
    struct trainer *trainer;
    struct progress progress;
};

static bool open_progress(struct progress *progress, const struct step *step, size_t steps,
                          struct failure *failure)
{
    progress->metrics = reserve(step->metric_count, sizeof *progress->metrics, failure);
    bool ok = progress->metrics != NULL;
    for (size_t i = 0; ok && i < step->metric_count; i++)
        ok = (progress->metrics[i] = reserve(steps, sizeof(double), failure)) != NULL;
    for (int part = 0; ok && part < PARTS; part++)
        ok = (progress->times[part] = reserve(steps, sizeof(int64_t), failure)) != NULL;
    return ok;
}

static void close_progress(struct progress *progress, const struct step *step)
{
    for (size_t i = 0; progress->metrics != NULL && i < step->metric_count; i++)
        free(progress->metrics[i]);
    for (int part = 0; part < PARTS; part++)
        free(progress->times[part]);
    free(progress->metrics);
    series_free(&progress->checkpoint_steps);
    series_free(&progress->checkpoint_times);
}

/* A micro-batch: its times and metrics are added to those of the step. */
static bool run_part(struct training *training, const int64_t *order, enum graph_kind kind,
                     struct failure *failure)
{
    struct progress *progress = &training->progress;
    size_t at = progress->count;
    int64_t begin_ns = now_ns();
    trainer_gather(training->trainer, order);
    progress->times[GATHER][at] += now_ns() - begin_ns;
    if (!trainer_run(training->trainer, kind, &progress->times[BIND][at],
                     &progress->times[RUN][at], failure))
        return false;
    int64_t ran_ns = now_ns();
    for (size_t i = 0; i < training->step->metric_count; i++)
        progress->metrics[i][at] += trainer_metric(training->trainer, i);
    progress->times[READ][at] += now_ns() - ran_ns;
    return true;
}

static bool run_step(struct training *training, uint64_t index, struct failure *failure)
{
    const struct arguments *given = training->given;
    struct progress *progress = &training->progress;
    const int64_t *order = training->plan->order + index * given->accumulate * given->batch;
    trainer_set(training->trainer, training->plan, index);
    for (uint64_t part = 0; part < given->accumulate; part++, order += given->batch) {
        bool last = part + 1 == given->accumulate;
        if (!run_part(training, order, last ? GRAPH_STEP : GRAPH_ACCUMULATE, failure))
            return false;
    }
    for (size_t i = 0; i < training->step->metric_count; i++)
        progress->metrics[i][progress->count] /= (double)given->accumulate;
    double loss = progress->metrics[0][progress->count];
    if (!isfinite(loss))
        return fail(failure, CAUSE_DIVERGED,
                    "diverged: the loss of step %llu is %f: the rate is too high, or the target "
                    "has a class that the model does not",
                    (unsigned long long)index, loss);
    progress->count++;
    return true;
}

/* Writes the state after `done` updates. */
static bool write_checkpoint(struct training *training, uint64_t done, struct failure *failure)
{
    struct progress *progress = &training->progress;
    int64_t begin_ns = now_ns();
    const struct state *state = trainer_state(training->trainer, failure);
    if (state == NULL)
        return false;
    const char *name = state_not_finite(training->step, state);
    if (name != NULL) {
        /* That step is not one of those that went well. */
        progress->count--;
        return fail(failure, CAUSE_DIVERGED,
                    "diverged: after step %llu '%s' holds a number that is not finite",
                    (unsigned long long)done - 1, name);
    }
    return state_write(training->given->checkpoint, training->step, state, failure) &&
           series_append(&progress->checkpoint_steps, (int64_t)done, failure) &&
           series_append(&progress->checkpoint_times, now_ns() - begin_ns, failure);
}

static bool run_steps(struct training *training, struct failure *failure)
{
    uint64_t until = training->given->until, every = training->given->checkpoint_every;
    bool written = false;
    for (uint64_t index = training->progress.first; index < until; index++) {
        if (!run_step(training, index, failure))
            return false;
        written = every > 0 && (index + 1) % every == 0;
        if (written && !write_checkpoint(training, index + 1, failure))
            return false;
    }
    return written || write_checkpoint(training, until, failure);
}

static void tell(const struct training *training, struct record *record)
{
    static const char *const parts[PARTS] = {"gather_ns", "bind_ns", "run_ns", "read_ns"};
    const struct progress *progress = &training->progress;
    yyjson_mut_doc *document = record->document;
    record_peak_memory(record);
    int64_t session_ns = 0;
    for (int kind = 0; kind < GRAPHS; kind++)
        session_ns += training->trainer->sessions[kind].created_ns;
    record_number(record, "session_ns", session_ns);
    record_text(record, "step_graph", training->step->step_graph);
    record_text(record, "state", training->given->checkpoint);
    record_number(record, "first_step", (int64_t)progress->first);
    yyjson_mut_obj_add_val(document, record->root, "losses",
                           record_reals(record, progress->metrics[0], progress->count));
    yyjson_mut_val *metrics = yyjson_mut_obj_add_obj(document, record->root, "metrics");
    for (size_t i = 1; i < training->step->metric_count; i++)
        yyjson_mut_obj_add(metrics, yyjson_mut_strcpy(document, training->step->metrics[i].name),
                           record_reals(record, progress->metrics[i], progress->count));
    for (int part = 0; part < PARTS; part++) {
        struct series series = {progress->times[part], progress->count, progress->count};
        record_series(record, parts[part], &series);
    }
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(document, record->root, "checkpoints");
    for (size_t i = 0; i < progress->checkpoint_times.count; i++) {
        yyjson_mut_val *entry = yyjson_mut_arr_add_obj(document, list);
        yyjson_mut_obj_add_sint(document, entry, "step", progress->checkpoint_steps.values[i]);
        yyjson_mut_obj_add_sint(document, entry, "ns", progress->checkpoint_times.values[i]);
    }
}

/* The state to begin with, and how many updates it has behind it. */
static bool read_begun(const struct arguments *given, const struct step *step, struct state *state,
                       uint64_t *first, struct failure *failure)
{
    bool begun = file_exists(given->checkpoint);
    const char *path = begun ? given->checkpoint : given->state;
    int64_t done;
    if (path == NULL)
        path = step->state_file;
    if (!state_read(path, step, state, failure))
        return false;
    memcpy(&done, state->data[step->counter], sizeof done);
    *first = (uint64_t)done;
    if (done >= 0 && *first <= given->until)
        return true;
    state_free(state);
    return fail(failure, CAUSE_BAD_INPUT, "%s: is of step %lld, expected one from 0 to --until %llu",
                path, (long long)done, (unsigned long long)given->until);
}

static bool train(const struct runtime *runtime, const struct arguments *given,
                  const struct options *options, const struct inputs *inputs,
                  const struct step *step, const struct plan *plan, struct record *record,
                  struct failure *failure)
{
    struct state state;
    struct trainer trainer;
    struct training training = {given, step, plan, &trainer, {0}};
    if (!read_begun(given, step, &state, &training.progress.first, failure))
        return false;
    state_remove_left(given->checkpoint);
    size_t steps = (size_t)(given->until - training.progress.first);
    bool opened = open_progress(&training.progress, step, steps, failure) &&
                  trainer_open(runtime, given, options, step, inputs, &state, &trainer, failure);
    state_free(&state);
    bool ok = opened && run_steps(&training, failure);
    if (ok || failure->cause == CAUSE_DIVERGED)
        tell(&training, record);
    if (opened)
        trainer_close(&trainer);
    close_progress(&training.progress, step);
    return ok;
}

bool run_train(const struct runtime *runtime, const struct arguments *given,
               const struct options *options, const struct inputs *inputs, struct record *record,
               struct failure *failure)
{
    struct step step;
    struct plan plan;
    if (!step_read(given->step, given->accumulate > 1, &step, failure))
        return false;
    bool ok = plan_read(given, &step, inputs, &plan, failure);
    if (ok) {
        ok = train(runtime, given, options, inputs, &step, &plan, record, failure);
        plan_free(&plan);
    }
    step_free(&step);
    return ok;
}
