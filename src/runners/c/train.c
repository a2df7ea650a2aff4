/* Level `train`: steps whose state stays on the provider's device. */

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "measure.h"
#include "result.h"

enum { STEP, ACCUMULATE, GRAPHS };
enum { GATHER, BIND, RUN, READ, PARTS };

/* What belongs to the plan's entry of the same number. A state that a graph gives has two buffers
   that change places: what is read is in `place`, what is written in the other one. All else is a
   value over memory of the program's own: a batch's rows, a scalar. */
struct tensor {
    const struct entry *entry;
    OrtValue *values[2];
    bool given;
    int place;
    unsigned char *bytes;      /* NULL: a state */
    const unsigned char *from; /* data: all rows; hyper: all steps */
    size_t size;               /* of a row, of a scalar */
};

/* A graph's end, or a tensor by its own name. A list of them ends with no name. */
struct link {
    const char *name;
    struct tensor *tensor;
};

struct graph {
    struct session session;
    struct link *takes, *gives;
    /* One for each way in which the buffers may lie: by how often, modulo 2, each of the graphs
       has run. Made when it first comes. */
    OrtIoBinding *bindings[2][2];
};

struct training {
    const struct plan *plan;
    struct tensor *tensors;
    struct link *state, *data, *hyper, *seed, *metrics;
    size_t metric_count;
    struct graph graphs[GRAPHS];
    int turns[GRAPHS];
    int64_t session_ns;
    unsigned char *block; /* the state on the host; NULL where it lies there anyway */
};

static struct link *collect(const struct training *training, enum role role, int group)
{
    const struct plan *plan = training->plan;
    struct link *found = reserve(plan_count(plan, role, group) + 1, sizeof *found), *next = found;
    for_entries(entry, plan, role, group) {
        bool own = entry->link == UINT32_MAX;
        size_t number = own ? (size_t)(entry - plan_entry(plan, 0)) : entry->link;
        *next++ = (struct link){entry->name, &training->tensors[number]};
    }
    return found;
}

static void open_graphs(struct training *training)
{
    for_entries(entry, training->plan, ROLE_GRAPH, ANY_GROUP) {
        struct graph *graph = &training->graphs[entry->group];
        session_open(&graph->session, training->plan, entry, NULL);
        training->session_ns += graph->session.created_ns;
        graph->takes = collect(training, ROLE_TAKES, (int)entry->group);
        graph->gives = collect(training, ROLE_GIVES, (int)entry->group);
        for (struct link *give = graph->gives; give->name != NULL; give++)
            give->tensor->given = true;
    }
}

/* Makes the state's buffers on the device, the first of each with what it begins with. */
static void open_state(struct training *training)
{
    const struct session *session = &training->graphs[STEP].session;
    OrtMemoryInfoDeviceType device;
    OrtAllocator *allocator;
    void *bytes;
    api->MemoryInfoGetDeviceType(session->output_memory, &device);
    if (device != OrtMemoryInfoDeviceType_CPU)
        training->block = reserve(training->plan->state_bytes, 1);
    check(api->CreateAllocator(session->session, session->output_memory, &allocator));
    for (struct link *state = training->state; state->name != NULL; state++) {
        struct tensor *tensor = state->tensor;
        const struct entry *entry = tensor->entry;
        for (int side = 0; side < (tensor->given ? 2 : 1); side++)
            check(api->CreateTensorAsOrtValue(allocator, entry->shape, entry->axes,
                                              (ONNXTensorElementDataType)entry->dtype,
                                              &tensor->values[side]));
        check(api->GetTensorMutableData(tensor->values[0], &bytes));
        const unsigned char *begun = data_of(entry);
        if (training->block != NULL)
            cuda_to_device(bytes, begun, entry->size);
        else if (entry->size > 0)
            memcpy(bytes, begun, entry->size);
        entry_drop(entry, begun);
    }
}

/* Values over memory of the program's own: of `rows` rows, or scalars where that is 0. */
static void lend(const struct link *link, size_t rows)
{
    for (; link->name != NULL; link++) {
        struct tensor *tensor = link->tensor;
        const struct entry *entry = tensor->entry;
        int64_t shape[MOST_AXES];
        memcpy(shape, entry->shape, sizeof shape);
        shape[0] = (int64_t)rows;
        tensor->from = data_of(entry);
        tensor->size = rows > 0 ? entry->size / (size_t)entry->shape[0] : dtype_size(entry->dtype);
        size_t bytes = tensor->size * (rows > 0 ? rows : 1);
        tensor->bytes = reserve(bytes, 1);
        check(api->CreateTensorWithDataAsOrtValue(
            runtime.host, tensor->bytes, bytes, shape, rows > 0 ? entry->axes : 0,
            (ONNXTensorElementDataType)entry->dtype, &tensor->values[0]));
        tensor->values[1] = tensor->values[0];
    }
}

/* Copies the rows of the order into the batch. */
static void gather(const struct training *training, const int64_t *order)
{
    for (const struct link *data = training->data; data->name != NULL; data++) {
        const struct tensor *tensor = data->tensor;
        size_t size = tensor->size;
        for (size_t row = 0; size > 0 && row < training->plan->batch; row++)
            memcpy(tensor->bytes + row * size, tensor->from + (size_t)order[row] * size, size);
    }
}

/* The binding for how the buffers lie now, with them and the metrics. */
static OrtIoBinding *binding_now(const struct training *training, struct graph *graph)
{
    const int *turns = training->turns;
    OrtIoBinding **binding = &graph->bindings[turns[STEP]][turns[ACCUMULATE]];
    if (*binding != NULL)
        return *binding;
    check(api->CreateIoBinding(graph->session.session, binding));
    for (const struct link *take = graph->takes; take->name != NULL; take++) {
        if (take->tensor->bytes == NULL)
            check(api->BindInput(*binding, take->name, take->tensor->values[take->tensor->place]));
    }
    for (const struct link *give = graph->gives; give->name != NULL; give++)
        check(api->BindOutput(*binding, give->name, give->tensor->values[1 - give->tensor->place]));
    return *binding;
}

/* Runs a graph; its metrics are then there, and the state is the next one. */
static void run_graph(struct training *training, int kind, int64_t *times)
{
    struct graph *graph = &training->graphs[kind];
    int64_t begin_ns = now_ns();
    OrtIoBinding *binding = binding_now(training, graph);
    /* What comes from the host: bound each time, which copies it where the device is another. */
    for (const struct link *take = graph->takes; take->name != NULL; take++) {
        if (take->tensor->bytes != NULL)
            check(api->BindInput(binding, take->name, take->tensor->values[0]));
    }
    check(api->SynchronizeBoundInputs(binding));
    int64_t bound_ns = now_ns();
    check(api->RunWithBinding(graph->session.session, NULL, binding));
    check(api->SynchronizeBoundOutputs(binding));
    times[RUN] += now_ns() - bound_ns;
    times[BIND] += bound_ns - begin_ns;
    training->turns[kind] ^= 1;
    for (struct link *give = graph->gives; give->name != NULL; give++)
        give->tensor->place ^= 1;
}

static double metric(const struct tensor *tensor)
{
    return tensor->size == sizeof(double) ? *(const double *)tensor->bytes
                                          : *(const float *)tensor->bytes;
}

static void run_step(struct training *training, size_t index, const int64_t *order, int64_t *times,
                     double *metrics)
{
    const struct plan *plan = training->plan;
    for (const struct link *hyper = training->hyper; hyper->name != NULL; hyper++) {
        const struct tensor *tensor = hyper->tensor;
        memcpy(tensor->bytes, tensor->from + index * tensor->size, tensor->size);
    }
    for (uint64_t part = 0; part < plan->accumulate; part++, order += plan->batch) {
        int64_t begin_ns = now_ns();
        gather(training, order);
        times[GATHER] += now_ns() - begin_ns;
        run_graph(training, part + 1 == plan->accumulate ? STEP : ACCUMULATE, times);
        int64_t ran_ns = now_ns();
        for (size_t i = 0; i < training->metric_count; i++)
            metrics[i] += metric(training->metrics[i].tensor);
        times[READ] += now_ns() - ran_ns;
    }
    for (size_t i = 0; i < training->metric_count; i++)
        metrics[i] /= (double)plan->accumulate;
}

/* Writes the state after `updates`, to the two files by turns; returns whether it is finite. */
static bool write_checkpoint(const struct training *training, uint64_t updates)
{
    static int slot = 1;
    bool finite = true;
    int64_t begin_ns = now_ns();
    slot ^= 1;
    struct file file = file_open(NULL, slot == 0 ? "state-0.bin" : "state-1.bin");
    for (const struct link *state = training->state; state->name != NULL; state++) {
        const struct entry *entry = state->tensor->entry;
        void *bytes;
        check(api->GetTensorMutableData(state->tensor->values[state->tensor->place], &bytes));
        if (training->block != NULL) {
            cuda_to_host(training->block + entry->data_at, bytes, entry->size);
            bytes = training->block + entry->data_at;
        }
        if (fseeko(file.stream, (off_t)entry->data_at, SEEK_SET) != 0)
            file_failed(&file);
        file_write(&file, bytes, entry->size);
        finite = finite && entry_is_finite(entry, bytes);
    }
    if (fflush(file.stream) != 0 ||
        ftruncate(fileno(file.stream), (off_t)training->plan->state_bytes) != 0 ||
        fsync(fileno(file.stream)) != 0)
        file_failed(&file);
    file_close(&file);
    fact_number("checkpoint", (int64_t)updates);
    fact_number("slot", slot);
    fact_number("ns", now_ns() - begin_ns);
    say();
    return finite;
}

void run_train(const struct plan *plan)
{
    struct training training = {.plan = plan};
    training.tensors = reserve(plan->count, sizeof *training.tensors);
    for (size_t i = 0; i < plan->count; i++)
        training.tensors[i].entry = plan_entry(plan, i);
    training.state = collect(&training, ROLE_STATE, ANY_GROUP);
    training.data = collect(&training, ROLE_DATA, ANY_GROUP);
    training.hyper = collect(&training, ROLE_HYPER, ANY_GROUP);
    training.seed = collect(&training, ROLE_SEED, ANY_GROUP);
    training.metrics = collect(&training, ROLE_METRIC, ANY_GROUP);
    size_t count = training.metric_count = plan_count(plan, ROLE_METRIC, ANY_GROUP);
    const int64_t *order = (const int64_t *)data_of(plan_next(plan, NULL, ROLE_ORDER, ANY_GROUP));
    open_graphs(&training);
    lend(training.data, plan->batch);
    lend(training.hyper, 0);
    lend(training.seed, 0);
    lend(training.metrics, 0);
    if (training.seed->name != NULL)
        memcpy(training.seed->tensor->bytes, &plan->seed, sizeof plan->seed);
    open_state(&training);
    int64_t(*times)[PARTS] = reserve(plan->steps, sizeof *times);
    double *metrics = reserve(plan->steps * count, sizeof *metrics), *row = metrics;
    bool finite = true, written = false;
    size_t done = 0;
    while (finite && done < plan->steps) {
        run_step(&training, done, order, times[done], row);
        finite = isfinite(row[0]);
        row += count;
        order += plan->accumulate * plan->batch;
        uint64_t updates = plan->first_step + ++done;
        written = finite && plan->checkpoint_every > 0 && updates % plan->checkpoint_every == 0;
        /* The next one would take the place of the last good one. */
        if (written)
            finite = write_checkpoint(&training, updates);
    }
    if (finite && !written)
        write_checkpoint(&training, plan->first_step + done);
    write_conditions();
    write_array("times.bin", times, done * sizeof *times);
    write_array("metrics.bin", metrics, (size_t)(row - metrics) * sizeof *metrics);
    fact_number("session_ns", training.session_ns);
}
