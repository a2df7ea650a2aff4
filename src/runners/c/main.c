/* ONNX Runtime's C API under the runner contract: docs/runner-contract.md. */

#include <ctype.h>
#include <stdio.h>

#include "cuda.h"
#include "modes.h"

/* One line on standard error. */
static void say(const struct failure *failure)
{
    fputs(failure->cause == CAUSE_NO_PROVIDER ? "c: skipped: " : "c: ", stderr);
    for (const char *c = failure->message; *c != '\0'; c++)
        fputc(isspace((unsigned char)*c) ? ' ' : *c, stderr);
    fputc('\n', stderr);
}

static bool run_mode(const struct arguments *given, const struct options *options,
                     struct record *record, struct failure *failure)
{
    struct runtime runtime;
    struct inputs inputs = {0};
    bool ok = given->mode == MODE_CASES || inputs_read(given->inputs, &inputs, failure);
    if (!ok || !runtime_open(given->library, &runtime, failure)) {
        inputs_free(&inputs);
        return false;
    }
    if (given->mode == MODE_CASES) {
        ok = run_cases(&runtime, given, options, failure);
    } else {
        ok = given->mode == MODE_LATENCY
                 ? run_latency(&runtime, given, options, &inputs, record, failure)
             : given->mode == MODE_LOAD
                 ? run_load(&runtime, given, options, &inputs, record, failure)
                 : run_train(&runtime, given, options, &inputs, record, failure);
        if (ok || failure->cause == CAUSE_DIVERGED)
            record_conditions(record, &runtime, options, given);
    }
    runtime_close(&runtime);
    inputs_free(&inputs);
    return ok;
}

/* Runs what was asked for; a provider that is not there is found before anything else. */
static bool run(const struct arguments *given, struct record *record, struct failure *failure)
{
    struct options options;
    if (given->provider == PROVIDER_CUDA && !cuda_has_device(failure))
        return false;
    if (!options_read(given->options, &options, failure))
        return false;
    bool ok = run_mode(given, &options, record, failure);
    options_free(&options);
    return ok;
}

/* The record of what did not end well: nothing that was measured until then stands in it, but for
   a training that diverged. */
static bool write_failed(struct record *record, const struct arguments *given,
                         const struct failure *failed, struct failure *failure)
{
    if (failed->cause != CAUSE_DIVERGED) {
        record_free(record);
        if (!record_open(record, given, failure))
            return false;
    }
    bool skipped = failed->cause == CAUSE_NO_PROVIDER;
    record_text(record, "status", skipped ? "skipped" : "failed");
    if (!skipped)
        record_text(record, "cause", cause_word(failed->cause));
    record_text(record, skipped ? "reason" : "message", failed->message);
    return record_write(record, given->record, failure);
}

int main(int argc, char **argv)
{
    struct arguments given;
    struct failure failure = {0}, second = {0};
    struct record record = {0};
    bool readable = arguments_read(argc, argv, &given, &failure);
    bool lines = readable && given.mode == MODE_CASES;
    bool ok = readable && record_open(&record, &given, &failure);
    if (ok) {
        ok = run(&given, &record, &failure);
        if (ok)
            record_text(&record, "status", "ok");
        ok = ok && (lines || record_write(&record, given.record, &failure));
    }
    if (!ok) {
        say(&failure);
        /* Of cases the record is what came of each: a fault is told by message and exit code. */
        if (given.record != NULL && !lines && !write_failed(&record, &given, &failure, &second))
            say(&second);
    }
    record_free(&record);
    return exit_code(failure.cause);
}
