#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "modes.h"
#include "outputs.h"

struct one_case {
    size_t index;
    const char *name, *model, *inputs, *outputs;
};

static bool read_case(const char *path, size_t index, yyjson_val *entry, struct one_case *found,
                      struct failure *failure)
{
    *found = (struct one_case){
        index,
        json_text(yyjson_obj_get(entry, "name")),
        json_text(yyjson_obj_get(entry, "model")),
        json_text(yyjson_obj_get(entry, "inputs")),
        json_text(yyjson_obj_get(entry, "outputs")),
    };
    if (found->name && found->model && found->inputs && found->outputs)
        return true;
    char *shown = json_shown(entry);
    fail(failure, CAUSE_BAD_INPUT,
         "%s: case %zu: expected the texts name, model, inputs and outputs, got %.300s", path, index,
         shown == NULL ? "?" : shown);
    free(shown);
    return false;
}

/* All of them, before the first one runs. */
static bool read_cases(const char *path, yyjson_val *list, struct one_case **cases,
                       struct failure *failure)
{
    size_t index, count;
    yyjson_val *entry;
    if (!yyjson_is_arr(list))
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected a JSON list of cases", path);
    *cases = reserve(yyjson_arr_size(list), sizeof **cases, failure);
    if (*cases == NULL)
        return false;
    yyjson_arr_foreach(list, index, count, entry) {
        if (!read_case(path, index, entry, &(*cases)[index], failure))
            return false;
    }
    return true;
}

static bool run_case(const struct runtime *runtime, const struct arguments *given,
                     const struct options *options, const struct one_case *one,
                     struct failure *failure)
{
    struct inputs inputs;
    struct session session;
    if (!inputs_read(one->inputs, &inputs, failure))
        return false;
    bool ok = session_open(runtime, one->model, given->provider, options, NULL, &session, failure);
    if (ok) {
        /* One run of the whole tensors: batches are for measuring. */
        inputs.batch = inputs.rows = 0;
        ok = session_takes(&session, &inputs, failure) &&
             outputs_write(&session, &inputs, one->outputs, failure);
        session_close(&session);
    }
    inputs_free(&inputs);
    return ok;
}

static bool say(FILE *record, const struct one_case *one, const char *status, const char *message,
                struct failure *failure)
{
    yyjson_mut_doc *document = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(document);
    yyjson_mut_doc_set_root(document, root);
    yyjson_mut_obj_add_uint(document, root, "case", one->index);
    yyjson_mut_obj_add_str(document, root, "name", one->name);
    yyjson_mut_obj_add_str(document, root, "status", status);
    if (message != NULL)
        yyjson_mut_obj_add_str(document, root, "message", message);
    char *line = yyjson_mut_write(document, YYJSON_WRITE_NOFLAG, NULL);
    bool ok = line != NULL && fprintf(record, "%s\n", line) > 0 && fflush(record) == 0;
    free(line);
    yyjson_mut_doc_free(document);
    return ok || fail(failure, CAUSE_CRASH, "--record: case %zu cannot be written: %s", one->index,
                      strerror(errno));
}

static bool run_and_say(const struct runtime *runtime, const struct arguments *given,
                        const struct options *options, const struct one_case *one, FILE *record,
                        struct failure *failure)
{
    struct failure found = {0};
    if (!say(record, one, "started", NULL, failure))
        return false;
    if (run_case(runtime, given, options, one, &found))
        return say(record, one, "ok", NULL, failure);
    if (found.cause == CAUSE_NO_PROVIDER) {
        *failure = found;
        return false;
    }
    const char *status = found.cause == CAUSE_UNSUPPORTED ? "unsupported" : "failed";
    return say(record, one, status, found.message, failure);
}

bool run_cases(const struct runtime *runtime, const struct arguments *given,
               const struct options *options, struct failure *failure)
{
    struct one_case *cases = NULL;
    FILE *record = NULL;
    yyjson_doc *document = read_json(given->cases, failure);
    yyjson_val *list = yyjson_doc_get_root(document);
    bool ok = document != NULL && read_cases(given->cases, list, &cases, failure) &&
              make_parent(given->record, failure);
    if (ok && (record = fopen(given->record, "a")) == NULL)
        ok = fail(failure, CAUSE_CRASH, "--record %s: cannot be written: %s", given->record,
                  strerror(errno));
    for (size_t i = given->skip; ok && i < yyjson_arr_size(list); i++)
        ok = run_and_say(runtime, given, options, &cases[i], record, failure);
    if (record != NULL)
        fclose(record);
    free(cases);
    yyjson_doc_free(document);
    return ok;
}
