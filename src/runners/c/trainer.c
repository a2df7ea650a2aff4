#include "trainer.h"

#include <stdlib.h>
#include <string.h>

#include "cuda.h"

/* The names of the file are those of the manifest. */
static bool check_names(const struct session *session, const struct graph *graph,
                        struct failure *failure)
{
    struct inputs named = {.count = graph->inputs.count};
    named.tensors = reserve(named.count, sizeof *named.tensors, failure);
    if (named.tensors == NULL)
        return false;
    for (size_t i = 0; i < named.count; i++)
        named.tensors[i].name = (char *)graph->inputs.texts[i];
    bool ok = session_takes(session, &named, failure);
    free(named.tensors);
    for (size_t i = 0; ok && i < graph->outputs.count; i++) {
        bool found = false;
        for (size_t k = 0; k < session->output_count; k++)
            found |= strcmp(session->outputs[k].name, graph->outputs.texts[i]) == 0;
        if (!found)
            ok = fail(failure, CAUSE_BAD_INPUT, "it has no output '%s'", graph->outputs.texts[i]);
    }
    return ok;
}

static bool open_sessions(struct trainer *trainer, const struct arguments *given,
                          const struct options *options, struct failure *failure)
{
    for (int kind = 0; kind < GRAPHS; kind++) {
        const struct graph *graph = &trainer->step->graphs[kind];
        struct session *session = &trainer->sessions[kind];
        struct failure said;
        if (graph->file == NULL)
            continue;
        if (!session_open(trainer->runtime, graph->file, given->provider, options, NULL, session,
                          failure))
            return false;
        if (!check_names(session, graph, &said))
            return fail(failure, said.cause, "%s: %.3000s", graph->file, said.message);
    }
    return true;
}

/* A value over `bytes` of memory that the trainer keeps. */
static bool lend(struct trainer *trainer, struct lent *lent, const char *name,
                 const struct dtype *dtype, const int64_t *shape, size_t rank, size_t bytes,
                 struct failure *failure)
{
    lent->name = name;
    lent->bytes = reserve(bytes, 1, failure);
    return lent->bytes != NULL &&
           succeeded(trainer->runtime, trainer->runtime->api->CreateTensorWithDataAsOrtValue(
                         trainer->runtime->host, lent->bytes, bytes, shape, rank, dtype->type,
                         &lent->value), failure);
}

static bool lend_data(struct trainer *trainer, const struct inputs *inputs,
                      struct failure *failure)
{
    const struct step *step = trainer->step;
    bool ok = true;
    for (size_t i = 0; ok && i < step->data_count; i++) {
        const struct tensor *from = find_tensor(inputs, step->data[i].name);
        int64_t shape[MOST_AXES];
        size_t bytes;
        memcpy(shape, from->shape, from->rank * sizeof *shape);
        shape[0] = (int64_t)trainer->batch;
        if (__builtin_mul_overflow(trainer->batch, from->row_elements * from->dtype->size, &bytes))
            return fail(failure, CAUSE_OUT_OF_MEMORY, "no memory for a batch of %zu rows",
                        trainer->batch);
        ok = lend(trainer, &trainer->data[i], from->name, from->dtype, shape, from->rank, bytes,
                  failure);
        trainer->data[i].from = from;
    }
    return ok;
}

static bool lend_scalars(struct trainer *trainer, uint64_t seed, struct failure *failure)
{
    const struct step *step = trainer->step;
    const struct dtype *real = dtype_by_type(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE);
    const struct dtype *whole = dtype_by_type(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
    bool ok = step->seed == NULL || lend(trainer, &trainer->seed, step->seed, whole, NULL, 0,
                                         sizeof seed, failure);
    if (ok && step->seed != NULL)
        memcpy(trainer->seed.bytes, &seed, sizeof seed);
    for (size_t i = 0; ok && i < step->hyper_count; i++)
        ok = lend(trainer, &trainer->hyper[i], step->hyper[i].name, real, NULL, 0, sizeof(double),
                  failure);
    for (size_t i = 0; ok && i < step->metric_count; i++)
        ok = lend(trainer, &trainer->metrics[i], step->metrics[i].name, step->metrics[i].dtype,
                  NULL, 0, step->metrics[i].dtype->size, failure);
    return ok;
}

static bool on_host(const struct trainer *trainer)
{
    OrtMemoryInfoDeviceType device;
    trainer->runtime->api->MemoryInfoGetDeviceType(trainer->sessions[GRAPH_STEP].output_memory,
                                                   &device);
    return device == OrtMemoryInfoDeviceType_CPU;
}

static bool bytes_of(const struct trainer *trainer, OrtValue *value, void **bytes,
                     struct failure *failure)
{
    return succeeded(trainer->runtime, trainer->runtime->api->GetTensorMutableData(value, bytes),
                     failure);
}

/* Makes the buffers of a tensor on the device, the first one with what it begins with. */
static bool fill_buffer(struct trainer *trainer, size_t index, const unsigned char *begun,
                        struct failure *failure)
{
    const struct runtime *runtime = trainer->runtime;
    const struct described *tensor = &trainer->step->state[index];
    struct buffer *buffer = &trainer->buffers[index];
    void *bytes;
    for (int side = 0; side < (tensor->next == NULL ? 1 : 2); side++) {
        if (!succeeded(runtime, runtime->api->CreateTensorAsOrtValue(
                                    trainer->allocator, tensor->shape, tensor->rank,
                                    tensor->dtype->type, &buffer->values[side]), failure))
            return false;
    }
    if (tensor->bytes == 0)
        return true;
    if (!bytes_of(trainer, buffer->values[0], &bytes, failure))
        return false;
    if (!on_host(trainer))
        return cuda_upload(bytes, begun, tensor->bytes, failure);
    memcpy(bytes, begun, tensor->bytes);
    return true;
}

static bool fill_buffers(struct trainer *trainer, const struct state *state,
                         struct failure *failure)
{
    const struct session *session = &trainer->sessions[GRAPH_STEP];
    bool ok = succeeded(trainer->runtime, trainer->runtime->api->CreateAllocator(
                            session->session, session->output_memory, &trainer->allocator),
                        failure);
    for (size_t i = 0; ok && i < trainer->step->state_count; i++)
        ok = fill_buffer(trainer, i, state->data[i], failure);
    return ok;
}

bool trainer_open(const struct runtime *runtime, const struct arguments *given,
                  const struct options *options, const struct step *step,
                  const struct inputs *inputs, const struct state *state, struct trainer *trainer,
                  struct failure *failure)
{
    *trainer = (struct trainer){.runtime = runtime, .step = step, .batch = (size_t)given->batch};
    trainer->buffers = reserve(step->state_count, sizeof *trainer->buffers, failure);
    trainer->data = reserve(step->data_count, sizeof *trainer->data, failure);
    trainer->hyper = reserve(step->hyper_count, sizeof *trainer->hyper, failure);
    trainer->metrics = reserve(step->metric_count, sizeof *trainer->metrics, failure);
    bool ok = trainer->buffers != NULL && trainer->data != NULL && trainer->hyper != NULL &&
              trainer->metrics != NULL && state_open(step, &trainer->host, failure) &&
              open_sessions(trainer, given, options, failure) &&
              lend_data(trainer, inputs, failure) && lend_scalars(trainer, given->seed, failure) &&
              fill_buffers(trainer, state, failure);
    if (!ok)
        trainer_close(trainer);
    return ok;
}

static void release(struct trainer *trainer, struct lent *list, size_t count)
{
    for (size_t i = 0; list != NULL && i < count; i++) {
        trainer->runtime->api->ReleaseValue(list[i].value);
        free(list[i].bytes);
    }
}

void trainer_close(struct trainer *trainer)
{
    const OrtApi *api = trainer->runtime->api;
    const struct step *step = trainer->step;
    for (int i = 0; i < GRAPHS * 4; i++)
        api->ReleaseIoBinding(trainer->bindings[i / 4][i / 2 % 2][i % 2]);
    for (size_t i = 0; trainer->buffers != NULL && i < step->state_count; i++) {
        api->ReleaseValue(trainer->buffers[i].values[0]);
        api->ReleaseValue(trainer->buffers[i].values[1]);
        if (trainer->host.data != NULL && trainer->allocator != NULL && !on_host(trainer))
            free(trainer->host.data[i]);
    }
    release(trainer, trainer->data, step->data_count);
    release(trainer, trainer->hyper, step->hyper_count);
    release(trainer, trainer->metrics, step->metric_count);
    release(trainer, &trainer->seed, 1);
    if (trainer->allocator != NULL)
        api->ReleaseAllocator(trainer->allocator);
    for (int kind = 0; kind < GRAPHS; kind++)
        session_close(&trainer->sessions[kind]);
    state_free(&trainer->host);
    free(trainer->buffers);
    free(trainer->data);
    free(trainer->hyper);
    free(trainer->metrics);
}

const struct state *trainer_state(struct trainer *trainer, struct failure *failure)
{
    bool host = on_host(trainer);
    for (size_t i = 0; i < trainer->step->state_count; i++) {
        const struct buffer *buffer = &trainer->buffers[i];
        size_t size = trainer->step->state[i].bytes;
        unsigned char **to = &trainer->host.data[i];
        void *bytes;
        if (!bytes_of(trainer, buffer->values[buffer->place], &bytes, failure))
            return NULL;
        if (host)
            *to = bytes;
        else if ((*to == NULL && (*to = reserve(size, 1, failure)) == NULL) ||
                 !cuda_copy(*to, bytes, size, failure))
            return NULL;
    }
    return &trainer->host;
}
