#include "session.hpp"

#include <dlfcn.h>

#include <cstring>
#include <unordered_map>

#include "cuda.hpp"
#include "result.hpp"

namespace {

using Texts = std::unordered_map<std::string, std::string>;

void set(Ort::SessionOptions& to, const std::string& name, const std::string& value) {
    if (name == "intra_op_num_threads") {
        to.SetIntraOpNumThreads(std::stoi(value));
    } else if (name == "inter_op_num_threads") {
        to.SetInterOpNumThreads(std::stoi(value));
    } else if (name == "execution_mode") {
        to.SetExecutionMode(value == "parallel" ? ORT_PARALLEL : ORT_SEQUENTIAL);
    } else if (name == "graph_optimization_level") {
        to.SetGraphOptimizationLevel(value == "disabled"   ? ORT_DISABLE_ALL
                                     : value == "basic"    ? ORT_ENABLE_BASIC
                                     : value == "extended" ? ORT_ENABLE_EXTENDED
                                                           : ORT_ENABLE_ALL);
    } else if (name == "enable_cpu_mem_arena") {
        value == "1" ? to.EnableCpuMemArena() : to.DisableCpuMemArena();
    } else if (name == "enable_mem_pattern") {
        value == "1" ? to.EnableMemPattern() : to.DisableMemPattern();
    } else {
        to.AddConfigEntry(name.c_str(), value.c_str());
    }
}

Ort::SessionOptions make_options(const Plan& plan, const char* profile) {
    Ort::SessionOptions made;
    for (const auto* option : plan.all(ROLE_OPTION)) set(made, option->name, option->text);
    made.SetLogSeverityLevel(profile ? ORT_LOGGING_LEVEL_INFO : ORT_LOGGING_LEVEL_ERROR);
    if (profile) made.EnableProfiling(profile);
    return made;
}

// Adds CUDA's provider: where that goes well and the session can be made, the session has it.
void append_cuda(Ort::SessionOptions& to, const Texts& values) {
    // The first of these calls loads the provider's library, setting options if there are any.
    bool setting_options = false;
    try {
        Ort::CUDAProviderOptions cuda;
        setting_options = true;
        cuda.Update(values);
        setting_options = false;
        to.AppendExecutionProvider_CUDA_V2(*cuda);
    } catch (const Ort::Exception& error) {
        const std::string message = error.what();
        const bool loaded = message.find("Failed to load") == std::string::npos;
        throw Failure(setting_options && loaded ? Cause::bad_input : Cause::no_provider,
                      "the CUDA provider: " + message);
    }
}

// A tensor of ONNX Runtime's own: texts cannot be lent.
Ort::Value make_texts(OrtAllocator* allocator, const Tensor& tensor, std::size_t first,
                      std::size_t count, const std::vector<std::int64_t>& shape) {
    auto value = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), tensor.type);
    for (std::size_t i = 0; i < count; ++i) {
        const auto text = tensor.texts[first + i];
        text.copy(value.GetResizedStringTensorElementBuffer(i, text.size()), text.size());
    }
    return value;
}

void copy_value(const Ort::Value& value, Output& output) {
    output.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    output.shape.clear();
    if (!value.HasValue() || !value.IsTensor()) return;
    Ort::Value::Shape shape{};
    value.GetTensorElementTypeAndShapeDataReference(output.type, shape);
    const auto element_size = dtype_size(output.type);
    const bool is_text = output.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    if (!is_text && element_size == 0) {
        throw Failure(Cause::unsupported, std::string("output '") + output.name +
                                              "' has ONNX Runtime's element type " +
                                              std::to_string(output.type));
    }
    output.shape.assign(shape.shape, shape.shape + shape.shape_len);
    output.elements = 1;
    for (const auto size : output.shape) output.elements *= static_cast<std::size_t>(size);
    output.bytes = is_text ? value.GetStringTensorDataLength() : output.elements * element_size;
    if (output.data.size() < output.bytes) output.data.resize(output.bytes);
    if (!is_text) {
        const void* from = value.GetTensorRawData();
        const auto device = value.GetTensorMemoryInfo().GetDeviceType();
        copy_to_host(device, output.data.data(), from, output.bytes);
        return;
    }
    output.offsets.resize(output.elements);
    if (output.elements == 0) return;
    value.GetStringTensorContent(output.data.data(), output.bytes, output.offsets.data(),
                                 output.elements);
}

}  // namespace

Runtime load_runtime(const std::string& library) {
    // Never closed: threads that the library has started may outlive its environment.
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* get_base = handle ? dlsym(handle, "OrtGetApiBase") : nullptr;
    if (!get_base) {
        throw Failure(Cause::missing_dependency, library + ": cannot be loaded: " + dlerror());
    }
    const auto* base = reinterpret_cast<const OrtApiBase* (*)()>(get_base)();
    const std::string version = base->GetVersionString();
    const OrtApi* api = base->GetApi(ORT_API_VERSION);
    if (!api) {
        throw Failure(Cause::missing_dependency,
                      library + ": it is ONNX Runtime " + version +
                          ", expected one with API version " + std::to_string(ORT_API_VERSION));
    }
    Ort::InitApi(api);
    return {version, Ort::Env(ORT_LOGGING_LEVEL_ERROR, "transect")};
}

Session::Session(Ort::Env& environment, const Plan& plan, const entry* model, const char* profile)
    : host(Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault)),
      output_memory(Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault)) {
    const bool on_cuda = std::strcmp(plan.text(ROLE_PROVIDER), "cuda") == 0;
    Texts values;
    for (const auto* option : plan.all(ROLE_PROVIDER_OPTION)) values[option->name] = option->text;
    auto made = make_options(plan, profile);
    // What loads with it in other languages, the provider's library, is within the time.
    const auto begin = Clock::now();
    if (on_cuda) append_cuda(made, values);
    handle = Ort::Session(environment, model->text, made);
    created_ns = between(begin, Clock::now());
    if (on_cuda) {
        const auto device = values.find("device_id");
        const int id = device == values.end() ? 0 : std::stoi(device->second);
        output_memory = Ort::MemoryInfo("Cuda", OrtDeviceAllocator, id, OrtMemTypeDefault);
    }
    binding = Ort::IoBinding(handle);
    for (const auto* one : plan.all(ROLE_OUTPUT, static_cast<int>(model->group))) {
        outputs.emplace_back().name = one->name;
    }
}

void Session::bind(const Inputs& inputs, Cut cut) {
    for (const auto& tensor : inputs.tensors) {
        auto shape = tensor.shape;
        if (cut.rows > 0) shape[0] = static_cast<std::int64_t>(cut.rows);
        const auto first = cut.first * tensor.row_elements;
        const auto count = cut.rows > 0 ? cut.rows * tensor.row_elements : tensor.elements;
        if (tensor.is_text()) {
            binding.BindInput(tensor.name, make_texts(allocator, tensor, first, count, shape));
            continue;
        }
        // ONNX Runtime does not write to inputs; its API has no other than this pointer.
        auto* data = const_cast<char*>(tensor.data) + first * tensor.element_size;
        binding.BindInput(tensor.name,
                           Ort::Value::CreateTensor(host, static_cast<void*>(data),
                                                    count * tensor.element_size, shape.data(),
                                                    shape.size(), tensor.type));
    }
    // Anew each time: a bound output keeps the tensor of the last run.
    for (const auto& output : outputs) binding.BindOutput(output.name, output_memory);
    binding.SynchronizeInputs();
}

void Session::copy() {
    const auto values = binding.GetOutputValues();
    for (std::size_t i = 0; i < values.size(); ++i) copy_value(values[i], outputs[i]);
}

Times Session::run(const Inputs& inputs, Cut cut) {
    const auto begin = Clock::now();
    bind(inputs, cut);
    const auto bound = Clock::now();
    handle.Run(Ort::RunOptions{nullptr}, binding);
    binding.SynchronizeOutputs();
    const auto ran = Clock::now();
    copy();
    const auto copied = Clock::now();
    binding.ClearBoundInputs();
    binding.ClearBoundOutputs();
    return {between(begin, bound), between(bound, ran), between(ran, copied)};
}
