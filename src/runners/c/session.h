/* One session and its runs. */

#ifndef TRANSECT_SESSION_H
#define TRANSECT_SESSION_H

#include "arguments.h"
#include "inputs.h"
#include "options.h"
#include "runtime.h"

/* One output of the last run, in host memory of the program's own. */
struct output {
    char *name;
    char kind[256]; /* what the model declares, in words for people */
    const struct dtype *dtype; /* NULL: no tensor */
    size_t rank;
    int64_t shape[MOST_AXES];
    size_t elements;
    size_t bytes, capacity;
    unsigned char *data;
    size_t *offsets; /* strings: where each begins in data */
    size_t offset_capacity;
};

struct session {
    const struct runtime *runtime;
    OrtSession *session;
    OrtIoBinding *binding;
    OrtMemoryInfo *output_memory; /* the provider's device */
    int64_t created_ns;           /* how long creating it took */
    size_t output_count;
    struct output *outputs;
};

/* The parts of one iteration in nanoseconds. */
struct times {
    int64_t bind_ns, run_ns, copy_ns;
};

/* `profile` is the prefix of a profile's file, or NULL. */
bool session_open(const struct runtime *runtime, const char *model, enum provider provider,
                  const struct options *options, const char *profile, struct session *session,
                  struct failure *failure);
void session_close(struct session *session);

/* Whether each tensor is an input of the model, or an initializer that one may override, and each
   input that needs one has one: with I/O binding ONNX Runtime runs without. Types and shapes are
   compared by it when it runs. */
bool session_takes(const struct session *session, const struct inputs *inputs,
                   struct failure *failure);

/* Binds, runs, and copies the results into `outputs`. */
bool session_run(struct session *session, const struct inputs *inputs, struct cut cut,
                 struct times *times, struct failure *failure);

/* Ends the profile; its file's name is to be freed. NULL and a failure when there is none. */
char *session_end_profile(struct session *session, struct failure *failure);

#endif
