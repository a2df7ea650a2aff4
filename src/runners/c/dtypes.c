#include "dtypes.h"

#include <string.h>

static const struct dtype dtypes[] = {
    {"float32", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4, "F32"},
    {"float64", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8, "F64"},
    {"float16", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2, "F16"},
    {"bfloat16", ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2, "BF16"},
    {"int8", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1, "I8"},
    {"int16", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2, "I16"},
    {"int32", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4, "I32"},
    {"int64", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8, "I64"},
    {"uint8", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1, "U8"},
    {"uint16", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2, "U16"},
    {"uint32", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4, "U32"},
    {"uint64", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8, "U64"},
    {"bool", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1, "BOOL"},
    {"string", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, 0, NULL},
};

const char dtype_names[] = "float32, float64, float16, bfloat16, int8, int16, int32, int64, "
                           "uint8, uint16, uint32, uint64, bool, string";

enum { COUNT = sizeof dtypes / sizeof dtypes[0] };

const struct dtype *dtype_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    }
    return NULL;
}

const struct dtype *dtype_by_type(ONNXTensorElementDataType type)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (dtypes[i].type == type)
            return &dtypes[i];
    }
    return NULL;
}
