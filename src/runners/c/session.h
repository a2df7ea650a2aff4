/* ONNX Runtime, one session, and its runs. */

#ifndef TRANSECT_SESSION_H
#define TRANSECT_SESSION_H

#include "onnxruntime_c_api.h"
#include "plan.h"

/* ONNX itself has no limit; more of an output are refused. */
enum { MOST_OUTPUT_AXES = 64 };

/* The library, loaded at run time, and its environment. */
struct runtime {
    const OrtApi *api;
    const char *version;
    OrtEnv *environment;
    OrtMemoryInfo *host;
    OrtAllocator *allocator; /* ONNX Runtime's own, not to be released */
};

extern struct runtime runtime;

struct text {
    const unsigned char *bytes;
    uint32_t size;
};

struct input {
    const struct entry *entry;
    const unsigned char *data;
    struct text *texts; /* strings: where each lies in the data */
    size_t elements, row_elements;
};

/* All rows; `batch` is 0 where tensors are given whole. */
struct inputs {
    size_t count, batch, rows;
    struct input *list;
};

/* Rows of the inputs; 0 rows: the whole tensors. */
struct cut {
    size_t first, rows;
};

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
struct times {
    int64_t bind_ns, run_ns, copy_ns;
};

void runtime_open(const char *library);

/* Fails in ONNX Runtime's words where a call did not go well. */
void check(OrtStatus *status);

/* The data of an entry, or a failure. */
const unsigned char *data_of(const struct entry *entry);

struct inputs inputs_open(const struct plan *plan, int group);
void inputs_close(struct inputs *inputs);

/* The i-th full batch, in a circle. */
struct cut full_batch(const struct inputs *inputs, size_t i);

/* `model` has the file and the group of its outputs; `profile` is the prefix of a profile's file, or
   NULL. On failure the session is to be closed too. */
void session_open(struct session *session, const struct plan *plan, const struct entry *model,
                  const char *profile);
void session_close(struct session *session);

/* Binds, runs, and copies the results into `outputs`. */
struct times session_run(struct session *session, const struct inputs *inputs, struct cut cut);

#endif
