// Element types of tensors: the contract's word, ONNX Runtime's number, the bytes it takes.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ort.hpp"

namespace transect {

struct Dtype {
    std::string_view name;
    ONNXTensorElementDataType type;
    std::size_t size;
    const char* tag;  // the word of safetensors; null: it has none

    bool is_string() const noexcept { return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }
};

// Null when the contract has no such type.
const Dtype* dtype_of(std::string_view name) noexcept;
const Dtype* dtype_of(ONNXTensorElementDataType type) noexcept;

// All names, for messages.
std::string dtype_names();

// The type of a value in words for people: sequence(map(int64,float32)).
std::string kind_of(const Ort::TypeInfo& type);

}  // namespace transect
