/* ONNX Runtime's shared library, loaded at run time, and its environment. */

#ifndef TRANSECT_RUNTIME_H
#define TRANSECT_RUNTIME_H

#include "failure.h"
#include "onnxruntime_c_api.h"

struct runtime {
    const OrtApi *api;
    const char *version;
    /* Where the library lies in memory: tells its file. */
    const void *address;
    OrtEnv *environment;
    OrtMemoryInfo *host;
    OrtAllocator *allocator; /* ONNX Runtime's own, not to be released */
};

bool runtime_open(const char *library, struct runtime *runtime, struct failure *failure);
void runtime_close(struct runtime *runtime);

/* Whether a call went well; otherwise the failure tells it in ONNX Runtime's words, and the
   status is released. */
bool succeeded(const struct runtime *runtime, OrtStatus *status, struct failure *failure);

#endif
