#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

const struct tensor *find_tensor(const struct inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcmp(inputs->tensors[i].name, name) == 0)
            return &inputs->tensors[i];
    }
    return NULL;
}

static bool fits(const struct described *wanted, const struct tensor *given)
{
    bool same = wanted->dtype == given->dtype && wanted->rank == given->rank && given->rank > 0;
    for (size_t axis = 1; same && axis < wanted->rank; axis++)
        same = wanted->shape[axis] == ANY_SIZE || wanted->shape[axis] == given->shape[axis];
    return same;
}

/* A shape as the manifest and the header have it, cut where the room ends. */
static void show_shape(const int64_t *shape, size_t rank, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (size_t axis = 0; axis < rank && used < room; axis++) {
        const char *comma = axis > 0 ? ", " : "";
        used += (size_t)(shape[axis] == ANY_SIZE
                             ? snprintf(text + used, room - used, "%sany", comma)
                             : snprintf(text + used, room - used, "%s%lld", comma,
                                        (long long)shape[axis]));
    }
    if (used < room)
        snprintf(text + used, room - used, "]");
}

static bool wrong_data(const struct arguments *given, const struct described *wanted,
                       const struct tensor *tensor, struct failure *failure)
{
    char found[256], expected[256];
    show_shape(tensor->shape, tensor->rank, found, sizeof found);
    show_shape(wanted->shape, wanted->rank, expected, sizeof expected);
    return fail(failure, CAUSE_BAD_INPUT,
                "%s/header.json: '%s' is %s of shape %s, the step takes %s of shape %s",
                given->inputs, wanted->name, tensor->dtype->name, found, wanted->dtype->name,
                expected);
}

static bool takes(const struct step *step, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < step->data_count; i++)
        found |= strcmp(step->data[i].name, name) == 0;
    return found;
}

/* The data are what the step takes, rows along the first axis, the same number in all. */
static bool check_data(const struct arguments *given, const struct step *step,
                       const struct inputs *inputs, size_t *rows, struct failure *failure)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (!takes(step, inputs->tensors[i].name))
            return fail(failure, CAUSE_BAD_INPUT, "%s/header.json: the step takes no tensor '%s'",
                        given->inputs, inputs->tensors[i].name);
    }
    for (size_t i = 0; i < step->data_count; i++) {
        const struct described *wanted = &step->data[i];
        const struct tensor *tensor = find_tensor(inputs, wanted->name);
        if (tensor == NULL)
            return fail(failure, CAUSE_BAD_INPUT, "%s/header.json: has no tensor '%s'",
                        given->inputs, wanted->name);
        if (!fits(wanted, tensor))
            return wrong_data(given, wanted, tensor, failure);
        if (i > 0 && (size_t)tensor->shape[0] != *rows)
            return fail(failure, CAUSE_BAD_INPUT,
                        "%s/header.json: '%s' has %lld rows, '%s' has %zu rows", given->inputs,
                        wanted->name, (long long)tensor->shape[0], step->data[0].name, *rows);
        *rows = (size_t)tensor->shape[0];
    }
    return true;
}

static const struct hyper *find_hyper(const struct step *step, const char *name)
{
    for (size_t i = 0; name != NULL && i < step->hyper_count; i++) {
        if (strcmp(step->hyper[i].name, name) == 0)
            return &step->hyper[i];
    }
    return NULL;
}

static bool is_finite(yyjson_val *value)
{
    return yyjson_is_num(value) && isfinite(yyjson_get_num(value));
}

static bool check_entry(const struct arguments *given, const struct step *step, yyjson_val *key,
                        yyjson_val *value, struct failure *failure)
{
    const char *name = json_text(key);
    if (find_hyper(step, name) == NULL)
        return fail(failure, CAUSE_BAD_INPUT, "%s: the step has no hyper-parameter '%s'",
                    given->schedule, name == NULL ? "?" : name);
    if (yyjson_is_arr(value) && yyjson_arr_size(value) < given->until)
        return fail(failure, CAUSE_BAD_INPUT, "%s: '%s' has %zu values, expected %llu",
                    given->schedule, name, yyjson_arr_size(value),
                    (unsigned long long)given->until);
    bool good = yyjson_is_arr(value) || is_finite(value);
    size_t index, count;
    yyjson_val *entry;
    yyjson_arr_foreach(value, index, count, entry) {
        good = good && is_finite(entry);
    }
    return good || fail(failure, CAUSE_BAD_INPUT, "%s: '%s' is not made of finite numbers",
                        given->schedule, name);
}

static bool read_schedule(const struct arguments *given, const struct step *step,
                          struct schedule *schedule, struct failure *failure)
{
    if (given->schedule == NULL)
        return true;
    schedule->document = read_json(given->schedule, failure);
    if (schedule->document == NULL)
        return false;
    yyjson_val *root = yyjson_doc_get_root(schedule->document), *key, *value;
    if (!yyjson_is_obj(root))
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected a JSON object", given->schedule);
    size_t index, count;
    yyjson_obj_foreach(root, index, count, key, value) {
        if (!check_entry(given, step, key, value, failure))
            return false;
    }
    return true;
}

double plan_value(const struct plan *plan, const struct hyper *hyper, uint64_t step)
{
    yyjson_val *root = yyjson_doc_get_root(plan->schedule.document);
    yyjson_val *value = yyjson_obj_get(root, hyper->name);
    if (yyjson_is_arr(value))
        value = yyjson_arr_get(value, (size_t)step);
    return value == NULL ? hyper->value : yyjson_get_num(value);
}

static bool read_order(const struct arguments *given, struct plan *plan, struct failure *failure)
{
    size_t size, count, wanted;
    if (!file_size(given->order, &size, failure))
        return false;
    bool huge = __builtin_mul_overflow(given->until, given->accumulate, &count);
    huge |= __builtin_mul_overflow(count, given->batch, &count);
    huge |= __builtin_mul_overflow(count, sizeof *plan->order, &wanted);
    if (huge || size < wanted || size % sizeof *plan->order != 0)
        return fail(failure, CAUSE_BAD_INPUT,
                    "%s: holds %zu bytes, expected int64 and at least %llu steps x %llu x %llu of "
                    "them", given->order, size, (unsigned long long)given->until,
                    (unsigned long long)given->accumulate, (unsigned long long)given->batch);
    plan->order = read_file(given->order, wanted, failure);
    for (size_t i = 0; plan->order != NULL && i < count; i++) {
        if (plan->order[i] < 0 || (uint64_t)plan->order[i] >= plan->rows)
            return fail(failure, CAUSE_BAD_INPUT, "%s: row %lld, the data have %zu rows",
                        given->order, (long long)plan->order[i], plan->rows);
    }
    return plan->order != NULL;
}

bool plan_read(const struct arguments *given, const struct step *step, const struct inputs *inputs,
               struct plan *plan, struct failure *failure)
{
    *plan = (struct plan){0};
    bool ok = read_schedule(given, step, &plan->schedule, failure) &&
              check_data(given, step, inputs, &plan->rows, failure) &&
              read_order(given, plan, failure);
    if (!ok)
        plan_free(plan);
    return ok;
}

void plan_free(struct plan *plan)
{
    yyjson_doc_free(plan->schedule.document);
    free(plan->order);
    *plan = (struct plan){0};
}
