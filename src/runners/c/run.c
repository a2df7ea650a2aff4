/* One run of a session: bind, run, copy. */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cuda.h"
#include "session.h"

/* A tensor of ONNX Runtime's own: strings cannot be lent. */
static bool make_strings(const struct runtime *runtime, const struct tensor *tensor, size_t first,
                         size_t count, const int64_t *shape, OrtValue **value,
                         struct failure *failure)
{
    const OrtApi *api = runtime->api;
    if (!succeeded(runtime, api->CreateTensorAsOrtValue(runtime->allocator, shape, tensor->rank,
                                                        tensor->dtype->type, value), failure))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct text *text = &tensor->texts[first + i];
        char *room;
        if (!succeeded(runtime, api->GetResizedStringTensorElementBuffer(*value, i, text->size,
                                                                         &room), failure))
            return false;
        memcpy(room, text->bytes, text->size);
    }
    return true;
}

/* The rows of a tensor as a value over the program's own memory. */
static bool make_value(const struct runtime *runtime, const struct tensor *tensor, struct cut cut,
                       OrtValue **value, struct failure *failure)
{
    int64_t shape[MOST_AXES];
    memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
    if (cut.rows > 0)
        shape[0] = (int64_t)cut.rows;
    size_t first = cut.first * tensor->row_elements;
    size_t count = cut.rows > 0 ? cut.rows * tensor->row_elements : tensor->elements;
    size_t size = tensor->dtype->size;
    if (size == 0)
        return make_strings(runtime, tensor, first, count, shape, value, failure);
    return succeeded(runtime, runtime->api->CreateTensorWithDataAsOrtValue(
                                  runtime->host, tensor->data + first * size, count * size, shape,
                                  tensor->rank, tensor->dtype->type, value), failure);
}

static bool bind(struct session *session, const struct inputs *inputs, struct cut cut,
                 struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    bool ok = true;
    for (size_t i = 0; ok && i < inputs->count; i++) {
        OrtValue *value = NULL;
        ok = make_value(runtime, &inputs->tensors[i], cut, &value, failure) &&
             succeeded(runtime, api->BindInput(session->binding, inputs->tensors[i].name, value),
                       failure);
        api->ReleaseValue(value);
    }
    /* Anew each time: a bound output keeps the tensor of the last run. */
    for (size_t i = 0; ok && i < session->output_count; i++)
        ok = succeeded(runtime, api->BindOutputToDevice(session->binding, session->outputs[i].name,
                                                        session->output_memory), failure);
    return ok && succeeded(runtime, api->SynchronizeBoundInputs(session->binding), failure);
}

static bool run(struct session *session, struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    return succeeded(runtime, api->RunWithBinding(session->session, NULL, session->binding),
                     failure) &&
           succeeded(runtime, api->SynchronizeBoundOutputs(session->binding), failure);
}

/* Makes room for at least `count` entries; what was there is lost. */
static bool grow(void **memory, size_t *capacity, size_t count, size_t size,
                 struct failure *failure)
{
    if (*memory != NULL && count <= *capacity)
        return true;
    free(*memory);
    *memory = reserve(count, size, failure);
    *capacity = *memory == NULL ? 0 : count;
    return *memory != NULL;
}

static bool copy_strings(const struct runtime *runtime, const OrtValue *value,
                         struct output *output, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    output->bytes = 0;
    return succeeded(runtime, api->GetStringTensorDataLength(value, &output->bytes), failure) &&
           grow((void **)&output->data, &output->capacity, output->bytes, 1, failure) &&
           grow((void **)&output->offsets, &output->offset_capacity, output->elements,
                sizeof *output->offsets, failure) &&
           (output->elements == 0 ||
            succeeded(runtime, api->GetStringTensorContent(value, output->data, output->bytes,
                                                           output->offsets, output->elements),
                      failure));
}

static bool copy_numbers(const struct runtime *runtime, OrtValue *value, struct output *output,
                         struct failure *failure)
{
    const OrtApi *api = runtime->api;
    const OrtMemoryInfo *memory;
    OrtMemoryInfoDeviceType device;
    void *data;
    output->bytes = output->elements * output->dtype->size;
    if (!grow((void **)&output->data, &output->capacity, output->bytes, 1, failure) ||
        !succeeded(runtime, api->GetTensorMutableData(value, &data), failure) ||
        !succeeded(runtime, api->GetTensorMemoryInfo(value, &memory), failure))
        return false;
    api->MemoryInfoGetDeviceType(memory, &device);
    if (device != OrtMemoryInfoDeviceType_CPU)
        return cuda_copy(output->data, data, output->bytes, failure);
    if (output->bytes > 0)
        memcpy(output->data, data, output->bytes);
    return true;
}

static bool copy_tensor(const struct runtime *runtime, OrtValue *value, struct output *output,
                        struct failure *failure)
{
    ONNXTensorElementDataType type;
    const int64_t *shape;
    if (!succeeded(runtime, runtime->api->GetTensorElementTypeAndShapeDataReference(
                                value, &type, &shape, &output->rank), failure))
        return false;
    output->dtype = dtype_by_type(type);
    if (output->dtype == NULL)
        return fail(failure, CAUSE_UNSUPPORTED,
                    "output '%s' has ONNX Runtime's element type %d, expected one of %s",
                    output->name, (int)type, dtype_names);
    if (output->rank > MOST_AXES)
        return fail(failure, CAUSE_UNSUPPORTED, "output '%s' has %zu axes, expected at most %d",
                    output->name, output->rank, MOST_AXES);
    output->elements = 1;
    for (size_t axis = 0; axis < output->rank; axis++) {
        output->shape[axis] = shape[axis];
        output->elements *= (size_t)shape[axis];
    }
    return output->dtype->size == 0 ? copy_strings(runtime, value, output, failure)
                                    : copy_numbers(runtime, value, output, failure);
}

static bool copy_value(const struct runtime *runtime, OrtValue *value, struct output *output,
                       struct failure *failure)
{
    const OrtApi *api = runtime->api;
    int present = 0, is_tensor = 0;
    if (!succeeded(runtime, api->HasValue(value, &present), failure) ||
        (present && !succeeded(runtime, api->IsTensor(value, &is_tensor), failure)))
        return false;
    output->dtype = NULL;
    return !is_tensor || copy_tensor(runtime, value, output, failure);
}

static bool copy(struct session *session, struct failure *failure)
{
    const struct runtime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    OrtValue **values;
    size_t count;
    if (!succeeded(runtime, api->GetBoundOutputValues(session->binding, runtime->allocator,
                                                      &values, &count), failure))
        return false;
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        ok = ok && copy_value(runtime, values[i], &session->outputs[i], failure);
        api->ReleaseValue(values[i]);
    }
    if (count > 0)
        runtime->allocator->Free(runtime->allocator, values);
    return ok;
}

bool session_run(struct session *session, const struct inputs *inputs, struct cut cut,
                 struct times *times, struct failure *failure)
{
    int64_t begin_ns = now_ns();
    bool ok = bind(session, inputs, cut, failure);
    int64_t bound_ns = now_ns();
    ok = ok && run(session, failure);
    int64_t ran_ns = now_ns();
    ok = ok && copy(session, failure);
    int64_t copied_ns = now_ns();
    session->runtime->api->ClearBoundInputs(session->binding);
    session->runtime->api->ClearBoundOutputs(session->binding);
    *times = (struct times){bound_ns - begin_ns, ran_ns - bound_ns, copied_ns - ran_ns};
    return ok;
}
