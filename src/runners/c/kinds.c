#include "kinds.h"

#include <stdio.h>
#include <string.h>

#include "dtypes.h"

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", more);
}

static void append_element(char *text, size_t size, ONNXTensorElementDataType type)
{
    const struct dtype *dtype = dtype_by_type(type);
    char number[32];
    snprintf(number, sizeof number, "element type %d", (int)type);
    append(text, size, dtype == NULL ? number : dtype->name);
}

static bool describe_tensor(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                            size_t size, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    const OrtTensorTypeAndShapeInfo *tensor;
    ONNXTensorElementDataType element;
    if (!succeeded(runtime, api->CastTypeInfoToTensorInfo(type, &tensor), failure) ||
        !succeeded(runtime, api->GetTensorElementType(tensor, &element), failure))
        return false;
    append_element(text, size, element);
    return true;
}

static bool append_kind(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                        size_t size, struct failure *failure);

static bool append_inner(const struct runtime *runtime, OrtTypeInfo *inner, const char *before,
                         char *text, size_t size, struct failure *failure)
{
    append(text, size, before);
    bool ok = append_kind(runtime, inner, text, size, failure);
    append(text, size, ")");
    runtime->api->ReleaseTypeInfo(inner);
    return ok;
}

static bool describe_sequence(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                              size_t size, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    const OrtSequenceTypeInfo *sequence;
    OrtTypeInfo *inner;
    return succeeded(runtime, api->CastTypeInfoToSequenceTypeInfo(type, &sequence), failure) &&
           succeeded(runtime, api->GetSequenceElementType(sequence, &inner), failure) &&
           append_inner(runtime, inner, "sequence(", text, size, failure);
}

static bool describe_map(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                         size_t size, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    const OrtMapTypeInfo *map;
    ONNXTensorElementDataType key;
    OrtTypeInfo *inner;
    if (!succeeded(runtime, api->CastTypeInfoToMapTypeInfo(type, &map), failure) ||
        !succeeded(runtime, api->GetMapKeyType(map, &key), failure) ||
        !succeeded(runtime, api->GetMapValueType(map, &inner), failure))
        return false;
    append(text, size, "map(");
    append_element(text, size, key);
    return append_inner(runtime, inner, ",", text, size, failure);
}

static bool describe_optional(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                              size_t size, struct failure *failure)
{
    const OrtApi *api = runtime->api;
    const OrtOptionalTypeInfo *optional;
    OrtTypeInfo *inner;
    return succeeded(runtime, api->CastTypeInfoToOptionalTypeInfo(type, &optional), failure) &&
           succeeded(runtime, api->GetOptionalContainedTypeInfo(optional, &inner), failure) &&
           append_inner(runtime, inner, "optional(", text, size, failure);
}

static bool append_kind(const struct runtime *runtime, const OrtTypeInfo *type, char *text,
                        size_t size, struct failure *failure)
{
    enum ONNXType kind;
    if (!succeeded(runtime, runtime->api->GetOnnxTypeFromTypeInfo(type, &kind), failure))
        return false;
    switch (kind) {
    case ONNX_TYPE_TENSOR:
        return describe_tensor(runtime, type, text, size, failure);
    case ONNX_TYPE_SEQUENCE:
        return describe_sequence(runtime, type, text, size, failure);
    case ONNX_TYPE_MAP:
        return describe_map(runtime, type, text, size, failure);
    case ONNX_TYPE_OPTIONAL:
        return describe_optional(runtime, type, text, size, failure);
    case ONNX_TYPE_SPARSETENSOR:
        append(text, size, "sparse tensor");
        return true;
    default:
        append(text, size, "opaque");
        return true;
    }
}

bool kind_describe(const struct runtime *runtime, const OrtTypeInfo *type, char *text, size_t size,
                   struct failure *failure)
{
    text[0] = '\0';
    return append_kind(runtime, type, text, size, failure);
}
