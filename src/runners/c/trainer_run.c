/* One run of a training step: gather, bind, run; the state stays where it is. */

#include <string.h>

#include "clock.h"
#include "trainer.h"

void trainer_gather(struct trainer *trainer, const int64_t *order)
{
    for (size_t i = 0; i < trainer->step->data_count; i++) {
        const struct lent *lent = &trainer->data[i];
        size_t size = lent->from->row_elements * lent->from->dtype->size;
        for (size_t row = 0; size > 0 && row < trainer->batch; row++)
            memcpy(lent->bytes + row * size, lent->from->data + (size_t)order[row] * size, size);
    }
}

void trainer_set(struct trainer *trainer, const struct plan *plan, uint64_t step)
{
    for (size_t i = 0; i < trainer->step->hyper_count; i++) {
        double value = plan_value(plan, &trainer->step->hyper[i], step);
        memcpy(trainer->hyper[i].bytes, &value, sizeof value);
    }
}

double trainer_metric(const struct trainer *trainer, size_t index)
{
    const unsigned char *bytes = trainer->metrics[index].bytes;
    float narrow;
    double wide;
    if (trainer->step->metrics[index].dtype->size == sizeof wide) {
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes, sizeof narrow);
    return narrow;
}

/* Binds the state's buffers as they lie now, and the metrics. */
static bool bind_state(const struct trainer *trainer, const struct graph *graph,
                       OrtIoBinding *binding, struct failure *failure)
{
    const struct runtime *runtime = trainer->runtime;
    const OrtApi *api = runtime->api;
    bool ok = true;
    for (size_t i = 0; ok && i < trainer->step->state_count; i++) {
        const struct described *tensor = &trainer->step->state[i];
        const struct buffer *buffer = &trainer->buffers[i];
        if (has_name(&graph->inputs, tensor->name))
            ok = succeeded(runtime, api->BindInput(binding, tensor->name,
                                                   buffer->values[buffer->place]), failure);
        if (ok && tensor->next != NULL && has_name(&graph->outputs, tensor->next))
            ok = succeeded(runtime, api->BindOutput(binding, tensor->next,
                                                    buffer->values[1 - buffer->place]), failure);
    }
    for (size_t i = 0; ok && i < trainer->step->metric_count; i++)
        ok = succeeded(runtime, api->BindOutput(binding, trainer->metrics[i].name,
                                                trainer->metrics[i].value), failure);
    return ok;
}

/* The binding for how the buffers lie now; NULL and a failure when there is none. */
static OrtIoBinding *binding_now(struct trainer *trainer, enum graph_kind kind,
                                 struct failure *failure)
{
    const struct runtime *runtime = trainer->runtime;
    const int *turns = trainer->turns;
    OrtIoBinding **binding = &trainer->bindings[kind][turns[GRAPH_STEP]][turns[GRAPH_ACCUMULATE]];
    if (*binding != NULL)
        return *binding;
    bool ok = succeeded(runtime, runtime->api->CreateIoBinding(trainer->sessions[kind].session,
                                                               binding), failure) &&
              bind_state(trainer, &trainer->step->graphs[kind], *binding, failure);
    return ok ? *binding : NULL;
}

static bool bind_feed(const struct trainer *trainer, const struct graph *graph,
                      OrtIoBinding *binding, const struct lent *list, size_t count,
                      struct failure *failure)
{
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        if (list[i].name != NULL && has_name(&graph->inputs, list[i].name))
            ok = succeeded(trainer->runtime, trainer->runtime->api->BindInput(
                               binding, list[i].name, list[i].value), failure);
    }
    return ok;
}

/* What comes from the host: bound each time, which copies it where the device is another. */
static bool bind(const struct trainer *trainer, const struct graph *graph, OrtIoBinding *binding,
                 struct failure *failure)
{
    const struct runtime *runtime = trainer->runtime;
    const struct step *step = trainer->step;
    return bind_feed(trainer, graph, binding, trainer->data, step->data_count, failure) &&
           bind_feed(trainer, graph, binding, trainer->hyper, step->hyper_count, failure) &&
           bind_feed(trainer, graph, binding, &trainer->seed, 1, failure) &&
           succeeded(runtime, runtime->api->SynchronizeBoundInputs(binding), failure);
}

static void change_places(struct trainer *trainer, enum graph_kind kind)
{
    trainer->turns[kind] ^= 1;
    for (size_t i = 0; i < trainer->step->state_count; i++) {
        const char *next = trainer->step->state[i].next;
        if (next != NULL && has_name(&trainer->step->graphs[kind].outputs, next))
            trainer->buffers[i].place ^= 1;
    }
}

bool trainer_run(struct trainer *trainer, enum graph_kind kind, int64_t *bind_ns, int64_t *run_ns,
                 struct failure *failure)
{
    const struct runtime *runtime = trainer->runtime;
    const OrtApi *api = runtime->api;
    int64_t begin_ns = now_ns();
    OrtIoBinding *binding = binding_now(trainer, kind, failure);
    if (binding == NULL || !bind(trainer, &trainer->step->graphs[kind], binding, failure))
        return false;
    int64_t bound_ns = now_ns();
    if (!succeeded(runtime, api->RunWithBinding(trainer->sessions[kind].session, NULL, binding),
                   failure) ||
        !succeeded(runtime, api->SynchronizeBoundOutputs(binding), failure))
        return false;
    *run_ns += now_ns() - bound_ns;
    *bind_ns += bound_ns - begin_ns;
    change_places(trainer, kind);
    return true;
}
