/* An open loop: requests come when they come, docs/runner-contract.md. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "measure.h"
#include "result.h"

/* A sleep may end late by about this much; the rest of the time is yielded away. */
enum { SLEEP_MARGIN_NS = 200000, NANO = 1000000000 };

/* Requests and who takes them. Times are nanoseconds from `zero_ns`. */
static struct {
    struct inputs inputs;
    size_t count;
    const int64_t *arrivals;
    int64_t (*served)[2]; /* start and end */
    int64_t zero_ns, last_begin_ns;
    pthread_barrier_t ready;
    pthread_mutex_t lock;
    size_t next; /* is under the lock */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The next request in order; false when there is none, or none is to be begun any more. */
static bool take(size_t *request)
{
    pthread_mutex_lock(&queue.lock);
    bool taken = queue.next < queue.count && now_ns() - queue.zero_ns <= queue.last_begin_ns;
    if (taken)
        *request = queue.next++;
    pthread_mutex_unlock(&queue.lock);
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

static void *serve(void *session)
{
    size_t request;
    /* All are there, then time begins: starting them takes none of the requests'. */
    pthread_barrier_wait(&queue.ready);
    pthread_barrier_wait(&queue.ready);
    while (take(&request)) {
        wait_until(queue.zero_ns + queue.arrivals[request]);
        queue.served[request][0] = now_ns() - queue.zero_ns;
        session_run(session, &queue.inputs, full_batch(&queue.inputs, request));
        queue.served[request][1] = now_ns() - queue.zero_ns;
    }
    return NULL;
}

static void serve_all(struct session *sessions, size_t count)
{
    pthread_t *threads = reserve(count, sizeof *threads);
    pthread_barrier_init(&queue.ready, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, serve, &sessions[i]) != 0)
            fail(CAUSE_CRASH, "thread %zu of %zu cannot be started", i + 1, count);
    }
    pthread_barrier_wait(&queue.ready);
    queue.zero_ns = now_ns();
    pthread_barrier_wait(&queue.ready);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

void run_load(const struct plan *plan)
{
    const struct entry *model = plan_next(plan, NULL, ROLE_MODEL, ANY_GROUP);
    const struct entry *arrivals = plan_next(plan, NULL, ROLE_ARRIVALS, ANY_GROUP);
    struct session *sessions = reserve(plan->sessions, sizeof *sessions);
    queue.inputs = inputs_open(plan, (int)model->group);
    queue.count = entry_elements(arrivals);
    queue.arrivals = (const int64_t *)data_of(arrivals);
    queue.served = reserve(queue.count, sizeof *queue.served);
    queue.last_begin_ns = (int64_t)plan->last_begin_ns;
    for (size_t i = 0; i < plan->sessions; i++)
        session_open(&sessions[i], plan, model, NULL);
    first_results(&sessions[0], plan, &queue.inputs);
    for (size_t i = 0; i < plan->sessions; i++)
        warm_up(&sessions[i], &queue.inputs, plan->warmup);
    serve_all(sessions, plan->sessions);
    write_conditions();
    /* What was taken was served, and it was taken in order: `next` requests. */
    write_array("times.bin", queue.served, queue.next * sizeof *queue.served);
    fact_text("stop_reason", queue.next == queue.count ? "all-served" : "time-limit");
}
