/* Element types of tensors: the contract's word, ONNX Runtime's number, the bytes it takes. */

#ifndef TRANSECT_DTYPES_H
#define TRANSECT_DTYPES_H

#include <stddef.h>

#include "onnxruntime_c_api.h"

struct dtype {
    const char *name;
    ONNXTensorElementDataType type;
    size_t size;     /* 0: strings */
    const char *tag; /* the word of safetensors; NULL: it has none */
};

/* NULL when the contract has no such type. */
const struct dtype *dtype_by_name(const char *name);
const struct dtype *dtype_by_type(ONNXTensorElementDataType type);

/* All names, for messages. */
extern const char dtype_names[];

#endif
