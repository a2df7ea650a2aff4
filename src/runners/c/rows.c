/* All rows of the inputs, and the files of what came of them; cases, which are nothing else. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "measure.h"
#include "result.h"

/* The file of an output that grows, and the shape of what is in it. */
struct written {
    uint32_t dtype; /* 0: no tensor, no file */
    size_t axes;
    int64_t shape[MOST_OUTPUT_AXES];
    struct file file;
};

static struct written open_written(const struct output *output, const char *folder, size_t index)
{
    struct written written = {.dtype = output->dtype, .axes = output->axes};
    char name[32];
    memcpy(written.shape, output->shape, sizeof written.shape);
    if (written.axes > 0)
        written.shape[0] = 0;
    snprintf(name, sizeof name, "output-%zu.bin", index);
    if (output->dtype != 0)
        written.file = file_open(folder, name);
    return written;
}

static void write_strings(const struct output *output, struct file *file)
{
    for (size_t i = 0; i < output->elements; i++) {
        size_t end = i + 1 < output->elements ? output->offsets[i + 1] : output->bytes;
        uint32_t size = (uint32_t)(end - output->offsets[i]);
        file_write(file, &size, sizeof size);
        file_write(file, output->data + output->offsets[i], size);
    }
}

static void put_shape(FILE *to, const int64_t *shape, size_t axes)
{
    fputc('[', to);
    for (size_t axis = 0; axis < axes; axis++)
        fprintf(to, "%s%lld", axis > 0 ? "," : "", (long long)shape[axis]);
    fputc(']', to);
}

static _Noreturn void bad_shape(const struct output *output, size_t rows)
{
    char shape[512] = "";
    FILE *text = fmemopen(shape, sizeof shape, "w");
    put_shape(text, output->shape, output->axes);
    fclose(text);
    fail(CAUSE_BAD_INPUT, "output '%s' has shape %s, expected a first axis of %zu and otherwise one "
         "shape and type for every batch", output->name, shape, rows);
}

/* `rows`: how many the first axis must have, 0 for any. */
static void append(const struct output *output, size_t rows, struct written *written)
{
    bool fits = output->dtype == written->dtype && output->axes == written->axes &&
                (rows == 0 || (output->axes > 0 && output->shape[0] == (int64_t)rows));
    for (size_t axis = 1; fits && axis < output->axes; axis++)
        fits = output->shape[axis] == written->shape[axis];
    if (!fits)
        bad_shape(output, rows);
    if (output->axes > 0)
        written->shape[0] += output->shape[0];
    if (output->dtype == STRING)
        write_strings(output, &written->file);
    else
        file_write(&written->file, output->data, output->bytes);
}

/* Closes the files; the fact `outputs`. */
static void close_written(struct written *written, size_t count)
{
    FILE *to = fact("outputs");
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "[", to);
        if (written[i].dtype == 0) {
            fputs("null", to);
            continue;
        }
        file_close(&written[i].file);
        fprintf(to, "[%u, ", written[i].dtype);
        put_shape(to, written[i].shape, written[i].axes);
        fputc(']', to);
    }
    fputs(count > 0 ? "]" : "[]", to);
}

static void write_rows(struct session *session, const struct inputs *inputs, const char *folder)
{
    struct written *written = reserve(session->output_count, sizeof *written);
    struct cut cut = {0, 0};
    do {
        if (inputs->batch > 0) {
            size_t left = inputs->rows - cut.first;
            cut.rows = left < inputs->batch ? left : inputs->batch;
        }
        session_run(session, inputs, cut);
        for (size_t i = 0; i < session->output_count; i++) {
            if (cut.first == 0)
                written[i] = open_written(&session->outputs[i], folder, i);
            if (written[i].dtype != 0 || session->outputs[i].dtype != 0)
                append(&session->outputs[i], cut.rows, &written[i]);
        }
        cut.first += cut.rows;
    } while (cut.first < inputs->rows);
    close_written(written, session->output_count);
    free(written);
}

void first_results(struct session *session, const struct plan *plan, const struct inputs *inputs)
{
    fact_number("session_ns", session->created_ns);
    session_run(session, inputs, full_batch(inputs, 0));
    fact_number("first_result_ns", now_ns());
    write_rows(session, inputs, plan_text(plan, ROLE_OUTPUTS, ANY_GROUP));
}

/* Whether a case went well; otherwise the trap has why. */
static bool run_case(const struct plan *plan, const struct entry *model, struct session *session,
                     struct trap *trap)
{
    bool ok = setjmp(trap->place) == 0;
    if (ok) {
        set_trap(trap);
        struct inputs inputs = inputs_open(plan, (int)model->group);
        session_open(session, plan, model, NULL);
        write_rows(session, &inputs, plan_text(plan, ROLE_OUTPUTS, (int)model->group));
        inputs_close(&inputs);
    }
    set_trap(NULL);
    return ok;
}

void run_cases(const struct plan *plan)
{
    const struct entry *model = NULL;
    while ((model = plan_next(plan, model, ROLE_MODEL, ANY_GROUP)) != NULL) {
        struct session session = {0};
        struct trap trap;
        const char *status = "ok";
        say("\"case\": %u, \"status\": \"started\"", model->group);
        if (!run_case(plan, model, &session, &trap)) {
            if (trap.failure.cause == CAUSE_NO_PROVIDER)
                fail(CAUSE_NO_PROVIDER, "%s", trap.failure.message);
            status = trap.failure.cause == CAUSE_UNSUPPORTED ? "unsupported" : "failed";
            fact_text("message", trap.failure.message);
        }
        say("\"case\": %u, \"status\": \"%s\"", model->group, status);
        session_close(&session);
    }
    write_conditions();
}
