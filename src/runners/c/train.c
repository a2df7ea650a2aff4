/* Level `train`: steps whose state stays on the provider's device. */

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
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
    unsigned char *bytes;
    const unsigned char *from; /* data: all rows; hyper: all steps */
    size_t size;               /* of a row, of a step's value */
};

/* A graph's end, or a tensor by its own name. */
struct link {
    const char *name;
    struct tensor *tensor;
};

struct links {
    size_t count;
    struct link *list;
};

struct graph {
    struct session session;
    struct links takes, gives;
    /* One for each way in which the buffers may lie: by how often, modulo 2, each of the graphs
       has run. Made when it first comes. */
    OrtIoBinding *bindings[2][2];
};

struct training {
    const struct plan *plan;
    struct tensor *tensors;
    struct links state, data, hyper, metrics;
    struct graph graphs[GRAPHS];
    int turns[GRAPHS];
    unsigned char *block; /* the state on the host; NULL where it lies there anyway */
};

static bool is_state(const struct tensor *tensor)
{
    return tensor->entry->role == ROLE_STATE;
}

static struct links collect(const struct training *training, enum role role, int group)
{
    const struct plan *plan = training->plan;
    const struct entry *entry = NULL;
    struct links found = {.list = reserve(plan_count(plan, role, group), sizeof *found.list)};
    while ((entry = plan_next(plan, entry, role, group)) != NULL) {
        bool ends = role == ROLE_TAKES || role == ROLE_GIVES;
        size_t number = ends ? entry->link : (size_t)(entry - plan_entry(plan, 0));
        found.list[found.count++] = (struct link){entry->name, &training->tensors[number]};
    }
    return found;
}

/* Returns how long all of it took. */
static int64_t open_graphs(struct training *training)
{
    const struct entry *entry = NULL;
    int64_t session_ns = 0;
    while ((entry = plan_next(training->plan, entry, ROLE_GRAPH, ANY_GROUP)) != NULL) {
        struct graph *graph = &training->graphs[entry->group];
        session_open(&graph->session, training->plan, entry, NULL);
        session_ns += graph->session.created_ns;
        graph->takes = collect(training, ROLE_TAKES, (int)entry->group);
        graph->gives = collect(training, ROLE_GIVES, (int)entry->group);
        for (size_t i = 0; i < graph->gives.count; i++)
            graph->gives.list[i].tensor->given = true;
    }
    return session_ns;
}

/* Makes the buffers of a tensor on the device, the first one with what it begins with. */
static void fill_buffers(const struct training *training, struct tensor *tensor,
                         OrtAllocator *allocator)
{
    const struct entry *entry = tensor->entry;
    void *bytes;
    for (int side = 0; side < (tensor->given ? 2 : 1); side++)
        check(runtime.api->CreateTensorAsOrtValue(allocator, entry->shape, entry->axes,
                                                  (ONNXTensorElementDataType)entry->dtype,
                                                  &tensor->values[side]));
    check(runtime.api->GetTensorMutableData(tensor->values[0], &bytes));
    if (training->block != NULL)
        cuda_to_device(bytes, data_of(entry), entry->size);
    else if (entry->size > 0)
        memcpy(bytes, data_of(entry), entry->size);
}

static void open_state(struct training *training)
{
    const struct session *session = &training->graphs[STEP].session;
    OrtMemoryInfoDeviceType device;
    OrtAllocator *allocator;
    runtime.api->MemoryInfoGetDeviceType(session->output_memory, &device);
    if (device != OrtMemoryInfoDeviceType_CPU)
        training->block = reserve(training->plan->state_bytes, 1);
    check(runtime.api->CreateAllocator(session->session, session->output_memory, &allocator));
    for (size_t i = 0; i < training->state.count; i++)
        fill_buffers(training, training->state.list[i].tensor, allocator);
}

/* Values over memory of the program's own: of `rows` rows, or scalars where that is 0. */
static void lend(const struct links *links, size_t rows)
{
    for (size_t i = 0; i < links->count; i++) {
        struct tensor *tensor = links->list[i].tensor;
        const struct entry *entry = tensor->entry;
        int64_t shape[MOST_AXES];
        memcpy(shape, entry->shape, sizeof shape);
        shape[0] = (int64_t)rows;
        tensor->from = data_of(entry);
        tensor->size = rows > 0 ? entry->size / (size_t)entry->shape[0] : dtype_size(entry->dtype);
        size_t bytes = tensor->size * (rows > 0 ? rows : 1);
        tensor->bytes = reserve(bytes, 1);
        check(runtime.api->CreateTensorWithDataAsOrtValue(
            runtime.host, tensor->bytes, bytes, shape, rows > 0 ? entry->axes : 0,
            (ONNXTensorElementDataType)entry->dtype, &tensor->values[0]));
    }
}

/* Copies the rows of the order into the batch. */
static void gather(const struct training *training, const int64_t *order)
{
    for (size_t i = 0; i < training->data.count; i++) {
        const struct tensor *tensor = training->data.list[i].tensor;
        size_t size = tensor->size;
        for (size_t row = 0; size > 0 && row < training->plan->batch; row++)
            memcpy(tensor->bytes + row * size, tensor->from + (size_t)order[row] * size, size);
    }
}

/* The binding for how the buffers lie now, with them and the metrics. */
static OrtIoBinding *binding_now(struct training *training, int kind)
{
    const OrtApi *api = runtime.api;
    struct graph *graph = &training->graphs[kind];
    const int *turns = training->turns;
    OrtIoBinding **binding = &graph->bindings[turns[STEP]][turns[ACCUMULATE]];
    if (*binding != NULL)
        return *binding;
    check(api->CreateIoBinding(graph->session.session, binding));
    for (size_t i = 0; i < graph->takes.count; i++) {
        const struct link *take = &graph->takes.list[i];
        if (is_state(take->tensor))
            check(api->BindInput(*binding, take->name, take->tensor->values[take->tensor->place]));
    }
    for (size_t i = 0; i < graph->gives.count; i++) {
        const struct link *give = &graph->gives.list[i];
        int side = is_state(give->tensor) ? 1 - give->tensor->place : 0;
        check(api->BindOutput(*binding, give->name, give->tensor->values[side]));
    }
    return *binding;
}

/* Runs a graph; its metrics are then there, and the state is the next one. */
static void run_graph(struct training *training, int kind, int64_t *times)
{
    const OrtApi *api = runtime.api;
    const struct graph *graph = &training->graphs[kind];
    int64_t begin_ns = now_ns();
    OrtIoBinding *binding = binding_now(training, kind);
    /* What comes from the host: bound each time, which copies it where the device is another. */
    for (size_t i = 0; i < graph->takes.count; i++) {
        const struct link *take = &graph->takes.list[i];
        if (!is_state(take->tensor))
            check(api->BindInput(binding, take->name, take->tensor->values[0]));
    }
    check(api->SynchronizeBoundInputs(binding));
    int64_t bound_ns = now_ns();
    check(api->RunWithBinding(graph->session.session, NULL, binding));
    check(api->SynchronizeBoundOutputs(binding));
    times[RUN] += now_ns() - bound_ns;
    times[BIND] += bound_ns - begin_ns;
    training->turns[kind] ^= 1;
    for (size_t i = 0; i < graph->gives.count; i++)
        graph->gives.list[i].tensor->place ^= 1;
}

static double metric(const struct tensor *tensor)
{
    float narrow;
    double wide;
    if (tensor->size == sizeof wide) {
        memcpy(&wide, tensor->bytes, sizeof wide);
        return wide;
    }
    memcpy(&narrow, tensor->bytes, sizeof narrow);
    return narrow;
}

static void run_step(struct training *training, size_t index, const int64_t *order, int64_t *times,
                     double *metrics)
{
    const struct plan *plan = training->plan;
    for (size_t i = 0; i < training->hyper.count; i++) {
        const struct tensor *tensor = training->hyper.list[i].tensor;
        memcpy(tensor->bytes, tensor->from + index * tensor->size, tensor->size);
    }
    for (uint64_t part = 0; part < plan->accumulate; part++, order += plan->batch) {
        int64_t begin_ns = now_ns();
        gather(training, order);
        times[GATHER] += now_ns() - begin_ns;
        run_graph(training, part + 1 == plan->accumulate ? STEP : ACCUMULATE, times);
        int64_t ran_ns = now_ns();
        for (size_t i = 0; i < training->metrics.count; i++)
            metrics[i] += metric(training->metrics.list[i].tensor);
        times[READ] += now_ns() - ran_ns;
    }
    for (size_t i = 0; i < training->metrics.count; i++)
        metrics[i] /= (double)plan->accumulate;
}

/* Writes the state after `updates` of them, to the two files by turns. */
static void write_checkpoint(const struct training *training, uint64_t updates)
{
    static int slot = 1;
    int64_t begin_ns = now_ns();
    slot ^= 1;
    struct file file = file_open(NULL, slot == 0 ? "state-0.bin" : "state-1.bin");
    for (size_t i = 0; i < training->state.count; i++) {
        const struct tensor *tensor = training->state.list[i].tensor;
        const struct entry *entry = tensor->entry;
        void *bytes;
        check(runtime.api->GetTensorMutableData(tensor->values[tensor->place], &bytes));
        if (training->block != NULL) {
            cuda_to_host(training->block + entry->data_at, bytes, entry->size);
            bytes = training->block + entry->data_at;
        }
        if (fseeko(file.stream, (off_t)entry->data_at, SEEK_SET) != 0)
            file_failed(&file);
        file_write(&file, bytes, entry->size);
    }
    if (fflush(file.stream) != 0 ||
        ftruncate(fileno(file.stream), (off_t)training->plan->state_bytes) != 0 ||
        fsync(fileno(file.stream)) != 0)
        file_failed(&file);
    file_close(&file);
    say("\"checkpoint\": %llu, \"slot\": %d, \"ns\": %lld", (unsigned long long)updates, slot,
        (long long)(now_ns() - begin_ns));
}

void run_train(const struct plan *plan)
{
    struct training training = {.plan = plan, .tensors = reserve(plan->count, sizeof(struct tensor))};
    for (size_t i = 0; i < plan->count; i++)
        training.tensors[i].entry = plan_entry(plan, i);
    training.state = collect(&training, ROLE_STATE, ANY_GROUP);
    training.data = collect(&training, ROLE_DATA, ANY_GROUP);
    training.hyper = collect(&training, ROLE_HYPER, ANY_GROUP);
    training.metrics = collect(&training, ROLE_METRIC, ANY_GROUP);
    struct links seed = collect(&training, ROLE_SEED, ANY_GROUP);
    const int64_t *order = (const int64_t *)data_of(plan_next(plan, NULL, ROLE_ORDER, ANY_GROUP));
    int64_t session_ns = open_graphs(&training);
    lend(&training.data, plan->batch);
    lend(&training.hyper, 0);
    lend(&training.metrics, 0);
    lend(&seed, 0);
    for (size_t i = 0; i < seed.count; i++)
        memcpy(seed.list[i].tensor->bytes, &plan->seed, sizeof plan->seed);
    open_state(&training);

    int64_t(*times)[PARTS] = reserve(plan->steps, sizeof *times);
    double *metrics = reserve(plan->steps * training.metrics.count, sizeof *metrics), *row = metrics;
    bool finite = true, written = false;
    size_t done = 0;
    while (finite && done < plan->steps) {
        run_step(&training, done, order, times[done], row);
        finite = isfinite(row[0]);
        row += training.metrics.count;
        order += plan->accumulate * plan->batch;
        uint64_t updates = plan->first_step + ++done;
        written = finite && plan->checkpoint_every > 0 && updates % plan->checkpoint_every == 0;
        if (written)
            write_checkpoint(&training, updates);
    }
    if (finite && !written)
        write_checkpoint(&training, plan->first_step + done);
    write_conditions();
    write_array("times.bin", times, done * sizeof *times);
    write_array("metrics.bin", metrics, (size_t)(row - metrics) * sizeof *metrics);
    fact_number("session_ns", session_ns);
}
