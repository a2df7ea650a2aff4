/* An open loop: requests come when they come, docs/runner-contract.md. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "clock.h"
#include "measure.h"
#include "result.h"

/* A sleep may end late by about this much; the rest of the time is yielded away. */
enum { SLEEP_MARGIN_NS = 200000 };

/* Nanoseconds from the queue's zero: a row of `times.bin`. */
struct served {
    int64_t start, end;
};

/* Requests and who takes them; what stands after the lock is under it. */
struct queue {
    const struct inputs *inputs;
    size_t count;
    const int64_t *arrivals;
    struct served *served;
    int64_t zero_ns, last_begin_ns;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the next two are */
    size_t waiting;
    bool opened;
    size_t next;
};

struct worker {
    struct queue *queue;
    struct session session;
    pthread_t thread;
};

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
    bool taken =
        queue->next < queue->count && now_ns() - queue->zero_ns <= queue->last_begin_ns;
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
        wait_until(queue->zero_ns + queue->arrivals[request]);
        queue->served[request].start = now_ns() - queue->zero_ns;
        session_run(&worker->session, queue->inputs, full_batch(queue->inputs, request));
        queue->served[request].end = now_ns() - queue->zero_ns;
    }
    return NULL;
}

static void serve_all(struct queue *queue, struct worker *workers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        workers[i].queue = queue;
        if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]) != 0)
            fail(CAUSE_CRASH, "thread %zu of %zu cannot be started", i + 1, count);
    }
    open_queue(queue, count);
    for (size_t i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
}

void run_load(const struct plan *plan)
{
    const struct entry *model = plan_next(plan, NULL, ROLE_MODEL, ANY_GROUP);
    const struct entry *arrivals = plan_next(plan, NULL, ROLE_ARRIVALS, ANY_GROUP);
    struct inputs inputs = inputs_open(plan, (int)model->group);
    struct queue queue = {.inputs = &inputs, .last_begin_ns = (int64_t)plan->last_begin_ns,
                          .count = entry_elements(arrivals),
                          .arrivals = (const int64_t *)data_of(arrivals),
                          .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct worker *workers = reserve(plan->sessions, sizeof *workers);
    queue.served = reserve(queue.count, sizeof *queue.served);
    for (size_t i = 0; i < plan->sessions; i++)
        session_open(&workers[i].session, plan, model, NULL);
    first_results(&workers[0].session, plan, &inputs);
    for (size_t i = 0; i < plan->sessions; i++)
        warm_up(&workers[i].session, &inputs, plan->warmup);
    serve_all(&queue, workers, plan->sessions);
    write_conditions();
    /* What was taken was served, and it was taken in order: `next` requests. */
    write_array("times.bin", queue.served, queue.next * sizeof *queue.served);
    fact_text("stop_reason", queue.next == queue.count ? "all-served" : "time-limit");
}
