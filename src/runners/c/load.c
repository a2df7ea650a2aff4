#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "clock.h"
#include "files.h"
#include "measure.h"
#include "modes.h"
#include "outputs.h"

/* A sleep may end late by about this much; the rest of the time is yielded away. */
enum { SLEEP_MARGIN_NS = 200000 };

/* In nanoseconds, 36 years: sums of times stay within 64 bits. */
static const int64_t LAST_ARRIVAL = INT64_C(1) << 60;

/* Requests and who takes them; what stands after the lock is under it. */
struct queue {
    const struct inputs *inputs;
    size_t count;
    int64_t *arrivals; /* nanoseconds from zero_ns, as are start and end */
    int64_t *start, *end;
    int64_t zero_ns, last_begin_ns;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the next two are */
    size_t waiting;
    bool opened;
    size_t next;
    struct failure failure;
};

struct worker {
    struct queue *queue;
    struct session session;
    pthread_t thread;
};

static bool read_arrivals(const char *path, struct queue *queue, struct failure *failure)
{
    size_t size;
    if (!file_size(path, &size, failure))
        return false;
    if (size == 0 || size % sizeof *queue->arrivals != 0)
        return fail(failure, CAUSE_BAD_INPUT, "%s: expected int64 arrival times, got %zu bytes",
                    path, size);
    queue->count = size / sizeof *queue->arrivals;
    queue->arrivals = read_file(path, size, failure);
    queue->start = reserve(queue->count, sizeof *queue->start, failure);
    queue->end = reserve(queue->count, sizeof *queue->end, failure);
    if (queue->arrivals == NULL || queue->start == NULL || queue->end == NULL)
        return false;
    for (size_t i = 0; i < queue->count; i++) {
        int64_t before = i == 0 ? 0 : queue->arrivals[i - 1];
        if (queue->arrivals[i] < before || queue->arrivals[i] > LAST_ARRIVAL)
            return fail(failure, CAUSE_BAD_INPUT,
                        "%s: expected times from 0 to 2^60 ns that do not fall, entry %zu is %lld "
                        "after %lld",
                        path, i, (long long)queue->arrivals[i], (long long)before);
    }
    return true;
}

/* Waits until all workers are there: starting them takes no time of the requests. */
static void wait_for_opening(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->waiting++;
    pthread_cond_broadcast(&queue->changed);
    while (!queue->opened)
        pthread_cond_wait(&queue->changed, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

/* Lets so many workers go when all of them wait: this is the time zero of arrivals. */
static void open_queue(struct queue *queue, size_t workers)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->waiting < workers)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->opened = true;
    queue->zero_ns = now_ns();
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* The next request in order; false when there is none, or none is to be begun any more. */
static bool take(struct queue *queue, size_t *request)
{
    pthread_mutex_lock(&queue->lock);
    bool taken = queue->next < queue->count && queue->failure.cause == CAUSE_NONE &&
                 now_ns() - queue->zero_ns <= queue->last_begin_ns;
    if (taken)
        *request = queue->next++;
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

static void wait_until(int64_t due_ns)
{
    int64_t wake_ns = due_ns - SLEEP_MARGIN_NS;
    if (now_ns() < wake_ns) {
        struct timespec wake = {wake_ns / NANO, wake_ns % NANO};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) != 0)
            continue;
    }
    while (now_ns() < due_ns)
        sched_yield();
}

static void *serve(void *argument)
{
    struct worker *worker = argument;
    struct queue *queue = worker->queue;
    size_t request;
    wait_for_opening(queue);
    while (take(queue, &request)) {
        struct times times;
        struct failure failure;
        wait_until(queue->zero_ns + queue->arrivals[request]);
        queue->start[request] = now_ns() - queue->zero_ns;
        if (!session_run(&worker->session, queue->inputs, full_batch(queue->inputs, request),
                         &times, &failure)) {
            pthread_mutex_lock(&queue->lock);
            queue->failure = failure;
            pthread_mutex_unlock(&queue->lock);
            break;
        }
        queue->end[request] = now_ns() - queue->zero_ns;
    }
    return NULL;
}

static bool serve_all(struct queue *queue, struct worker *workers, size_t count,
                      struct failure *failure)
{
    size_t started = 0;
    while (started < count &&
           pthread_create(&workers[started].thread, NULL, serve, &workers[started]) == 0)
        started++;
    if (started < count) {
        pthread_mutex_lock(&queue->lock);
        fail(&queue->failure, CAUSE_CRASH, "thread %zu of %zu cannot be started", started + 1,
             count);
        pthread_mutex_unlock(&queue->lock);
    }
    open_queue(queue, started);
    for (size_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (queue->failure.cause != CAUSE_NONE)
        *failure = queue->failure;
    return queue->failure.cause == CAUSE_NONE;
}

/* What was taken was served, and it was taken in order: `next` requests. */
static void record_served(struct record *record, const struct queue *queue, size_t sessions)
{
    struct series start = {queue->start, queue->next, queue->next};
    struct series end = {queue->end, queue->next, queue->next};
    record_number(record, "sessions", (int64_t)sessions);
    record_number(record, "arrivals", (int64_t)queue->count);
    record_series(record, "start_ns", &start);
    record_series(record, "end_ns", &end);
    record_text(record, "stop_reason", queue->next == queue->count ? "all-served" : "time-limit");
}

static bool run_sessions(struct queue *queue, struct worker *workers,
                         const struct arguments *given, struct record *record,
                         struct failure *failure)
{
    struct times times;
    struct session *first = &workers[0].session;
    record_number(record, "session_ns", first->created_ns);
    if (!session_takes(first, queue->inputs, failure) ||
        !session_run(first, queue->inputs, full_batch(queue->inputs, 0), &times, failure))
        return false;
    record_number(record, "first_result_ns", now_ns());
    bool ok = outputs_write(first, queue->inputs, given->outputs, failure);
    for (size_t i = 0; ok && i < given->sessions; i++)
        ok = warm_up(&workers[i].session, queue->inputs, given->warmup, failure);
    ok = ok && serve_all(queue, workers, given->sessions, failure);
    if (ok) {
        record_peak_memory(record);
        record_served(record, queue, given->sessions);
    }
    return ok && record_outputs(record, given->outputs, queue->inputs, failure);
}

bool run_load(const struct runtime *runtime, const struct arguments *given,
              const struct options *options, const struct inputs *inputs, struct record *record,
              struct failure *failure)
{
    struct queue queue = {.inputs = inputs, .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    struct worker *workers = NULL;
    size_t opened = 0;
    bool ok = read_arrivals(given->arrivals, &queue, failure);
    if (ok) {
        queue.last_begin_ns = 2 * queue.arrivals[queue.count - 1] +
                              (int64_t)(fmin(given->max_seconds, 1e9) * NANO);
        workers = reserve(given->sessions, sizeof *workers, failure);
        ok = workers != NULL;
    }
    while (ok && opened < given->sessions) {
        workers[opened].queue = &queue;
        ok = session_open(runtime, given->model, given->provider, options, NULL,
                          &workers[opened].session, failure);
        opened += ok;
    }
    ok = ok && run_sessions(&queue, workers, given, record, failure);
    while (opened > 0)
        session_close(&workers[--opened].session);
    free(workers);
    free(queue.arrivals);
    free(queue.start);
    free(queue.end);
    return ok;
}
