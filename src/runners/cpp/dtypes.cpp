#include "dtypes.hpp"

#include <algorithm>
#include <array>

namespace transect {

namespace {

constexpr std::array<Dtype, 14> dtypes{{
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
    {"string", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, 0, nullptr},
}};

template <typename Predicate>
const Dtype* find(Predicate predicate) noexcept {
    const auto found = std::find_if(dtypes.begin(), dtypes.end(), predicate);
    return found == dtypes.end() ? nullptr : &*found;
}

std::string element_name(ONNXTensorElementDataType type) {
    const auto* dtype = dtype_of(type);
    return dtype ? std::string(dtype->name) : "element type " + std::to_string(type);
}

}  // namespace

const Dtype* dtype_of(std::string_view name) noexcept {
    return find([&](const Dtype& dtype) { return dtype.name == name; });
}

const Dtype* dtype_of(ONNXTensorElementDataType type) noexcept {
    return find([&](const Dtype& dtype) { return dtype.type == type; });
}

std::string dtype_names() {
    std::string names;
    for (const auto& dtype : dtypes) names += (names.empty() ? "" : ", ") + std::string(dtype.name);
    return names;
}

std::string kind_of(const Ort::TypeInfo& type) {
    switch (type.GetONNXType()) {
    case ONNX_TYPE_TENSOR:
        return element_name(type.GetTensorTypeAndShapeInfo().GetElementType());
    case ONNX_TYPE_SEQUENCE:
        return "sequence(" + kind_of(type.GetSequenceTypeInfo().GetSequenceElementType()) + ")";
    case ONNX_TYPE_MAP: {
        const auto map = type.GetMapTypeInfo();
        return "map(" + element_name(map.GetMapKeyType()) + "," + kind_of(map.GetMapValueType()) +
               ")";
    }
    case ONNX_TYPE_OPTIONAL:
        return "optional(" + kind_of(type.GetOptionalTypeInfo().GetOptionalElementType()) + ")";
    case ONNX_TYPE_SPARSETENSOR:
        return "sparse tensor";
    default:
        return "opaque";
    }
}

}  // namespace transect
