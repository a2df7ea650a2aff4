/* ONNX Runtime, one session, and its runs. */

#ifndef TRANSECT_SESSION_H
#define TRANSECT_SESSION_H

#include <time.h>

#include "onnxruntime_c_api.h"
#include "plan.h"

enum { MOST_OUTPUT_AXES = 64 /* ONNX has no limit */ };

/* The library, loaded at run time, and its environment. */
extern const OrtApi *api;
extern struct runtime {
    const char *version;
    OrtEnv *environment;
    OrtMemoryInfo *host;
    OrtAllocator *allocator; /* ONNX Runtime's own, not to be released */
} runtime;

struct input {
    const struct entry *entry;
    const unsigned char *data;
    const unsigned char **texts; /* strings: where each begins, after its length */
    size_t elements, row_elements;
};

/* All rows; `batch` is 0 where tensors are given whole. */
struct inputs {
    size_t count, batch, rows;
    struct input *list;
};

/* Rows of the inputs; 0 rows: the whole tensors. */
struct cut { size_t first, rows; };

/* An output of the last run, in host memory of the program's own. */
struct output {
    const char *name;
    uint32_t dtype; /* 0: no tensor */
    size_t axes;
    int64_t shape[MOST_OUTPUT_AXES];
    size_t elements, bytes, capacity;
    unsigned char *data;
    size_t *offsets; /* strings: where each begins in the data */
    size_t offset_capacity;
};

struct session {
    OrtSession *session;
    OrtIoBinding *binding;
    OrtMemoryInfo *output_memory; /* the provider's device */
    int64_t created_ns;           /* how long creating it took */
    size_t output_count;
    struct output *outputs;
};

/* The parts of one iteration. */
struct times { int64_t bind_ns, run_ns, copy_ns; };

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void runtime_open(const char *library);

/* Fails in ONNX Runtime's words where a call did not go well. */
void check(OrtStatus *status);

/* The data of an entry, or a failure. */
const unsigned char *data_of(const struct entry *entry);

/* They stay until the program ends. */
struct inputs inputs_open(const struct plan *plan, int group);

/* The i-th full batch, in a circle. */
struct cut full_batch(const struct inputs *inputs, size_t i);

/* `model` has the file and the group of its outputs; `profile`: a file's prefix, or NULL. */
void session_open(struct session *session, const struct plan *plan, const struct entry *model,
                  const char *profile);
void session_close(struct session *session);

/* Binds, runs, and copies the results into `outputs`. */
struct times session_run(struct session *session, const struct inputs *inputs, struct cut cut);

#endif
