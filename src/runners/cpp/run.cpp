// One run of a session: bind, run, copy.

#include <cstring>

#include "cuda.hpp"
#include "failure.hpp"
#include "session.hpp"

namespace transect {

namespace {

// A tensor of ONNX Runtime's own: strings cannot be lent.
Ort::Value make_strings(OrtAllocator* allocator, const Tensor& tensor, std::size_t first,
                        std::size_t count, const std::vector<std::int64_t>& shape) {
    auto value =
        Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), tensor.dtype->type);
    for (std::size_t i = 0; i < count; ++i) {
        const auto text = tensor.texts[first + i];
        text.copy(value.GetResizedStringTensorElementBuffer(i, text.size()), text.size());
    }
    return value;
}

void copy_strings(const Ort::Value& value, Output& output) {
    output.bytes = value.GetStringTensorDataLength();
    if (output.data.size() < output.bytes) output.data.resize(output.bytes);
    output.offsets.resize(output.elements);
    if (output.elements == 0) return;
    value.GetStringTensorContent(output.data.data(), output.bytes, output.offsets.data(),
                                 output.elements);
}

void copy_numbers(const Ort::Value& value, Output& output) {
    output.bytes = output.elements * output.dtype->size;
    if (output.data.size() < output.bytes) output.data.resize(output.bytes);
    const void* data = value.GetTensorRawData();
    if (value.GetTensorMemoryInfo().GetDeviceType() != OrtMemoryInfoDeviceType_CPU) {
        cuda::copy_to_host(output.data.data(), data, output.bytes);
    } else if (output.bytes > 0) {
        std::memcpy(output.data.data(), data, output.bytes);
    }
}

void copy_value(const Ort::Value& value, Output& output) {
    output.dtype = nullptr;
    if (!value.HasValue() || !value.IsTensor()) return;
    ONNXTensorElementDataType type;
    Ort::Value::Shape shape{};
    value.GetTensorElementTypeAndShapeDataReference(type, shape);
    output.dtype = dtype_of(type);
    if (!output.dtype) {
        throw Unsupported("output '" + output.name + "' has ONNX Runtime's element type " +
                          std::to_string(type) + ", expected one of " + dtype_names());
    }
    output.shape.assign(shape.shape, shape.shape + shape.shape_len);
    output.elements = 1;
    for (const auto size : output.shape) output.elements *= static_cast<std::size_t>(size);
    output.dtype->is_string() ? copy_strings(value, output) : copy_numbers(value, output);
}

}  // namespace

void Session::bind(const Inputs& inputs, Cut cut) {
    for (const auto& tensor : inputs.tensors()) {
        auto shape = tensor.shape;
        if (cut.rows > 0) shape[0] = static_cast<std::int64_t>(cut.rows);
        const auto first = cut.first * tensor.row_elements;
        const auto count = cut.rows > 0 ? cut.rows * tensor.row_elements : tensor.elements;
        if (tensor.dtype->is_string()) {
            binding_.BindInput(tensor.name.c_str(),
                               make_strings(allocator_, tensor, first, count, shape));
            continue;
        }
        // ONNX Runtime does not write to inputs; its API has no other than this pointer.
        auto* data = const_cast<char*>(tensor.data.data()) + first * tensor.dtype->size;
        binding_.BindInput(tensor.name.c_str(),
                           Ort::Value::CreateTensor(host_, static_cast<void*>(data),
                                                    count * tensor.dtype->size, shape.data(),
                                                    shape.size(), tensor.dtype->type));
    }
    // Anew each time: a bound output keeps the tensor of the last run.
    for (const auto& output : outputs_) binding_.BindOutput(output.name.c_str(), output_memory_);
    binding_.SynchronizeInputs();
}

void Session::copy() {
    const auto values = binding_.GetOutputValues();
    for (std::size_t i = 0; i < values.size(); ++i) copy_value(values[i], outputs_[i]);
}

Times Session::run(const Inputs& inputs, Cut cut) {
    const auto begin = Clock::now();
    bind(inputs, cut);
    const auto bound = Clock::now();
    session_.Run(Ort::RunOptions{nullptr}, binding_);
    binding_.SynchronizeOutputs();
    const auto ran = Clock::now();
    copy();
    const auto copied = Clock::now();
    binding_.ClearBoundInputs();
    binding_.ClearBoundOutputs();
    return {bound - begin, ran - bound, copied - ran};
}

}  // namespace transect
