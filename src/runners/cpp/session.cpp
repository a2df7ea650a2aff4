#include "session.hpp"

#include <algorithm>

#include "failure.hpp"

namespace transect {

namespace {

// Adds CUDA's provider: where that goes well and the session can be made, the session has it.
void append_cuda(Ort::SessionOptions& to,
                 const std::unordered_map<std::string, std::string>& values) {
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

Ort::SessionOptions make_options(const Options& options,
                                 const std::optional<std::string>& profile) {
    Ort::SessionOptions made;
    options.apply(made);
    made.SetLogSeverityLevel(profile ? ORT_LOGGING_LEVEL_INFO : ORT_LOGGING_LEVEL_ERROR);
    if (profile) made.EnableProfiling(profile->c_str());
    return made;
}

// The memory in which the provider leaves outputs.
Ort::MemoryInfo memory_of(Provider provider, const Options& options) {
    if (provider == Provider::cpu) {
        return Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    }
    const auto values = options.of_provider();
    const auto device = values.find("device_id");
    const int id = device == values.end() ? 0 : std::stoi(device->second);
    return Ort::MemoryInfo("Cuda", OrtDeviceAllocator, id, OrtMemTypeDefault);
}

}  // namespace

Session::Session(Ort::Env& environment, const std::filesystem::path& model, Provider provider,
                 const Options& options, const std::optional<std::string>& profile)
    : host_(Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault)),
      output_memory_(nullptr) {
    if (!std::filesystem::is_regular_file(model)) {
        throw BadInput(model.string() + ": no such model file");
    }
    auto made = make_options(options, profile);
    // What loads with it in other languages, the provider's library, is within the time.
    const auto begin = Clock::now();
    if (provider == Provider::cuda) append_cuda(made, options.of_provider());
    session_ = Ort::Session(environment, model.c_str(), made);
    created_ = Clock::now() - begin;
    output_memory_ = memory_of(provider, options);
    binding_ = Ort::IoBinding(session_);
    const auto names = session_.GetOutputNames();
    for (std::size_t i = 0; i < names.size(); ++i) {
        Output output;
        output.name = names[i];
        output.kind = kind_of(session_.GetOutputTypeInfo(i));
        outputs_.push_back(std::move(output));
    }
}

void Session::require_inputs(const std::vector<std::string>& given) const {
    const auto contains = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto needed = session_.GetInputNames();
    auto names = needed;
    for (auto& name : session_.GetOverridableInitializerNames()) names.push_back(std::move(name));
    for (const auto& name : given) {
        if (contains(names, name)) continue;
        std::string takes;
        for (const auto& one : names) takes += (takes.empty() ? "'" : ", '") + one + "'";
        throw BadInput("the model has no input '" + name + "', it takes: " + takes);
    }
    for (std::size_t i = 0; i < needed.size(); ++i) {
        const bool optional = session_.GetInputTypeInfo(i).GetONNXType() == ONNX_TYPE_OPTIONAL;
        if (contains(given, needed[i]) || optional) continue;
        throw BadInput("the model needs '" + needed[i] + "', which is not given");
    }
}

std::string Session::end_profile() {
    return session_.EndProfilingAllocated(allocator_).get();
}

}  // namespace transect
