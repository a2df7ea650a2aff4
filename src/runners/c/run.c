/* Inputs, and one run of a session: bind, run, copy. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "result.h"
#include "session.h"

const unsigned char *data_of(const struct entry *entry)
{
    char why[4096];
    const unsigned char *data = entry_data(entry, why, sizeof why);
    if (data == NULL)
        fail(errno == ENOMEM ? CAUSE_OUT_OF_MEMORY : CAUSE_CRASH, "%s", why);
    return data;
}

/* The length of a text lies before it. */
static uint32_t text_size(const unsigned char *text)
{
    uint32_t size;
    memcpy(&size, text - sizeof size, sizeof size);
    return size;
}

static const unsigned char **cut_texts(const struct input *input)
{
    const unsigned char **texts = reserve(input->elements, sizeof *texts), *at = input->data;
    for (size_t i = 0; i < input->elements; i++) {
        texts[i] = at + sizeof(uint32_t);
        at = texts[i] + text_size(texts[i]);
    }
    return texts;
}

struct inputs inputs_open(const struct plan *plan, int group)
{
    struct inputs inputs = {.batch = plan->batch, .rows = plan->rows};
    inputs.list = reserve(plan_count(plan, ROLE_INPUT, group), sizeof *inputs.list);
    for_entries(entry, plan, ROLE_INPUT, group) {
        struct input *input = &inputs.list[inputs.count++];
        input->entry = entry;
        input->data = data_of(entry);
        input->elements = entry_elements(entry);
        input->row_elements = inputs.rows > 0 ? input->elements / inputs.rows : 0;
        if (entry->dtype == STRING)
            input->texts = cut_texts(input);
    }
    return inputs;
}

struct cut full_batch(const struct inputs *inputs, size_t i)
{
    size_t batches = inputs->batch == 0 ? 1 : inputs->rows / inputs->batch;
    return (struct cut){i % batches * inputs->batch, inputs->batch};
}

/* A tensor of ONNX Runtime's own: strings cannot be lent. */
static void make_strings(const struct input *input, size_t first, size_t count,
                         const int64_t *shape, OrtValue **value)
{
    check(api->CreateTensorAsOrtValue(runtime.allocator, shape, input->entry->axes,
                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, value));
    for (size_t i = 0; i < count; i++) {
        const unsigned char *text = input->texts[first + i];
        char *room;
        check(api->GetResizedStringTensorElementBuffer(*value, i, text_size(text), &room));
        memcpy(room, text, text_size(text));
    }
}

/* The rows of a tensor as a value over the program's own memory. */
static void make_value(const struct input *input, struct cut cut, OrtValue **value)
{
    const struct entry *entry = input->entry;
    int64_t shape[MOST_AXES];
    memcpy(shape, entry->shape, sizeof shape);
    if (cut.rows > 0)
        shape[0] = (int64_t)cut.rows;
    size_t first = cut.first * input->row_elements;
    size_t count = cut.rows > 0 ? cut.rows * input->row_elements : input->elements;
    size_t size = dtype_size(entry->dtype);
    if (entry->dtype == STRING)
        make_strings(input, first, count, shape, value);
    else
        check(api->CreateTensorWithDataAsOrtValue(
            runtime.host, (void *)(input->data + first * size), count * size, shape, entry->axes,
            (ONNXTensorElementDataType)entry->dtype, value));
}

static void bind(struct session *session, const struct inputs *inputs, struct cut cut)
{
    for (size_t i = 0; i < inputs->count; i++) {
        OrtValue *value;
        make_value(&inputs->list[i], cut, &value);
        check(api->BindInput(session->binding, inputs->list[i].entry->name, value));
        api->ReleaseValue(value);
    }
    /* Anew each time: a bound output keeps the tensor of the last run. */
    for (size_t i = 0; i < session->output_count; i++)
        check(api->BindOutputToDevice(session->binding, session->outputs[i].name,
                                      session->output_memory));
    check(api->SynchronizeBoundInputs(session->binding));
}

/* Makes room for at least `count` entries; what was there is lost. */
static void *grow(void *memory, size_t *capacity, size_t count, size_t size)
{
    if (memory != NULL && count <= *capacity)
        return memory;
    void *room = reserve(count, size);
    free(memory);
    *capacity = count;
    return room;
}

static void copy_strings(const OrtValue *value, struct output *output)
{
    output->bytes = 0;
    check(api->GetStringTensorDataLength(value, &output->bytes));
    output->data = grow(output->data, &output->capacity, output->bytes, 1);
    output->offsets = grow(output->offsets, &output->offset_capacity, output->elements,
                           sizeof *output->offsets);
    if (output->elements > 0)
        check(api->GetStringTensorContent(value, output->data, output->bytes, output->offsets,
                                          output->elements));
}

static void copy_numbers(OrtValue *value, struct output *output)
{
    const OrtMemoryInfo *memory;
    OrtMemoryInfoDeviceType device;
    void *data;
    output->bytes = output->elements * dtype_size(output->dtype);
    output->data = grow(output->data, &output->capacity, output->bytes, 1);
    check(api->GetTensorMutableData(value, &data));
    check(api->GetTensorMemoryInfo(value, &memory));
    api->MemoryInfoGetDeviceType(memory, &device);
    if (device != OrtMemoryInfoDeviceType_CPU)
        cuda_to_host(output->data, data, output->bytes);
    else if (output->bytes > 0)
        memcpy(output->data, data, output->bytes);
}

static void copy_value(OrtValue *value, struct output *output)
{
    ONNXTensorElementDataType type;
    const int64_t *shape;
    int present = 0, is_tensor = 0;
    output->dtype = 0;
    check(api->HasValue(value, &present));
    if (present)
        check(api->IsTensor(value, &is_tensor));
    if (!is_tensor)
        return;
    check(api->GetTensorElementTypeAndShapeDataReference(value, &type, &shape, &output->axes));
    output->dtype = type;
    if (output->dtype != STRING && dtype_size(output->dtype) == 0)
        fail(CAUSE_UNSUPPORTED, "output '%s' has ONNX Runtime's element type %d, which this "
             "program cannot take", output->name, (int)type);
    if (output->axes > MOST_OUTPUT_AXES)
        fail(CAUSE_UNSUPPORTED, "output '%s' has %zu axes, expected at most %d", output->name,
             output->axes, MOST_OUTPUT_AXES);
    output->elements = 1;
    for (size_t axis = 0; axis < output->axes; axis++) {
        output->shape[axis] = shape[axis];
        output->elements *= (size_t)shape[axis];
    }
    if (output->dtype == STRING)
        copy_strings(value, output);
    else
        copy_numbers(value, output);
}

static void copy(struct session *session)
{
    OrtValue **values;
    size_t count;
    check(api->GetBoundOutputValues(session->binding, runtime.allocator, &values, &count));
    for (size_t i = 0; i < count; i++) {
        copy_value(values[i], &session->outputs[i]);
        api->ReleaseValue(values[i]);
    }
    if (count > 0)
        runtime.allocator->Free(runtime.allocator, values);
}

struct times session_run(struct session *session, const struct inputs *inputs, struct cut cut)
{
    int64_t begin_ns = now_ns();
    bind(session, inputs, cut);
    int64_t bound_ns = now_ns();
    check(api->RunWithBinding(session->session, NULL, session->binding));
    check(api->SynchronizeBoundOutputs(session->binding));
    int64_t ran_ns = now_ns();
    copy(session);
    int64_t copied_ns = now_ns();
    api->ClearBoundInputs(session->binding);
    api->ClearBoundOutputs(session->binding);
    return (struct times){bound_ns - begin_ns, ran_ns - bound_ns, copied_ns - ran_ns};
}
