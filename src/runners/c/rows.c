/* All rows of the inputs, and the files of what came of them; cases, which are nothing else. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "result.h"

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

/* `rows`: how many the first axis must have, 0 for any; `first`: as it was in the first batch. */
static void append(const struct output *output, const struct output *first, size_t rows,
                   struct file *file)
{
    if (rows > 0 && (output->axes == 0 || output->shape[0] != (int64_t)rows ||
                     output->axes != first->axes ||
                     memcmp(output->shape + 1, first->shape + 1,
                            (output->axes - 1) * sizeof *output->shape) != 0)) {
        char shape[512] = "";
        FILE *text = fmemopen(shape, sizeof shape, "w");
        put_shape(text, output->shape, output->axes);
        fclose(text);
        fail(CAUSE_BAD_INPUT, "output '%s' has shape %s, expected a first axis of %zu and "
             "otherwise one shape for every batch", output->name, shape, rows);
    }
    if (output->dtype == STRING)
        write_strings(output, file);
    else
        file_write(file, output->data, output->bytes);
}

/* The fact `outputs`: the last run's, joined along the first axis. */
static void tell(const struct session *session, const struct inputs *inputs)
{
    FILE *to = fact("outputs");
    fputc('[', to);
    for (size_t i = 0; i < session->output_count; i++) {
        struct output *output = &session->outputs[i];
        fputs(i > 0 ? ", " : "", to);
        if (output->dtype == 0) {
            fputs("null", to);
            continue;
        }
        if (inputs->batch > 0)
            output->shape[0] = (int64_t)inputs->rows;
        fprintf(to, "[%u, ", output->dtype);
        put_shape(to, output->shape, output->axes);
        fputc(']', to);
    }
    fputc(']', to);
}

static void write_rows(struct session *session, const struct inputs *inputs, const char *folder)
{
    struct file *files = reserve(session->output_count, sizeof *files);
    struct output *first = reserve(session->output_count, sizeof *first);
    struct cut cut = {0, 0};
    char name[32];
    do {
        if (inputs->batch > 0) {
            size_t left = inputs->rows - cut.first;
            cut.rows = left < inputs->batch ? left : inputs->batch;
        }
        session_run(session, inputs, cut);
        for (size_t i = 0; i < session->output_count; i++) {
            if (session->outputs[i].dtype == 0)
                continue;
            snprintf(name, sizeof name, "output-%zu.bin", i);
            if (files[i].stream == NULL) {
                files[i] = file_open(folder, name);
                first[i] = session->outputs[i];
            }
            append(&session->outputs[i], &first[i], cut.rows, &files[i]);
        }
        cut.first += cut.rows;
    } while (cut.first < inputs->rows);
    for (size_t i = 0; i < session->output_count; i++) {
        if (files[i].stream != NULL)
            file_close(&files[i]);
    }
    tell(session, inputs);
    free(files);
    free(first);
}

void first_results(struct session *session, const struct plan *plan, const struct inputs *inputs)
{
    fact_number("session_ns", session->created_ns);
    session_run(session, inputs, full_batch(inputs, 0));
    fact_number("first_result_ns", now_ns());
    write_rows(session, inputs, plan_text(plan, ROLE_OUTPUTS, ANY_GROUP));
}

/* Whether a case went well; otherwise `failure` has why. */
static bool run_case(const struct plan *plan, const struct entry *model, struct session *session)
{
    jmp_buf place;
    if (setjmp(place) != 0) {
        trap = NULL;
        return false;
    }
    trap = &place;
    struct inputs inputs = inputs_open(plan, (int)model->group);
    session_open(session, plan, model, NULL);
    write_rows(session, &inputs, plan_text(plan, ROLE_OUTPUTS, (int)model->group));
    trap = NULL;
    return true;
}

void run_cases(const struct plan *plan)
{
    for_entries(model, plan, ROLE_MODEL, ANY_GROUP) {
        struct session session = {0};
        fact_number("case", model->group);
        fact_text("status", "started");
        say();
        fact_number("case", model->group);
        if (run_case(plan, model, &session)) {
            fact_text("status", "ok");
        } else {
            const struct failure found = failure;
            if (found.cause == CAUSE_NO_PROVIDER)
                fail(found.cause, "%s", found.message);
            fact_text("status", found.cause == CAUSE_UNSUPPORTED ? "unsupported" : "failed");
            fact_text("message", found.message);
        }
        say();
        session_close(&session);
    }
    write_conditions();
}
