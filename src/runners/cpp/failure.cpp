#include "failure.hpp"

#include <new>

#include "ort.hpp"

namespace transect {

namespace {

Cause cause_of(OrtErrorCode code, const std::string& message) {
    auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
    if (says("bad_alloc") || says("Failed to allocate memory")) return Cause::out_of_memory;
    switch (code) {
    case ORT_INVALID_ARGUMENT:
    case ORT_NO_SUCHFILE:
    case ORT_NO_MODEL:
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
        return Cause::bad_input;
    default:
        // A file that is no model, or one of an unknown opset, is only FAIL.
        return says("ModelProto") || says("Load model") ? Cause::bad_input : Cause::crash;
    }
}

}  // namespace

Failure as_failure(const std::exception& error) {
    if (auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
    if (auto* said = dynamic_cast<const Ort::Exception*>(&error)) {
        const std::string message = said->what();
        return {cause_of(said->GetOrtErrorCode(), message), "ONNX Runtime: " + message};
    }
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return {memory ? Cause::out_of_memory : Cause::crash, error.what()};
}

int exit_code(Cause cause) noexcept {
    switch (cause) {
    case Cause::bad_input:
    case Cause::unsupported:
        return 2;
    case Cause::no_provider:
        return 3;
    default:
        return 1;
    }
}

const char* cause_word(Cause cause) noexcept {
    switch (cause) {
    case Cause::missing_dependency:
        return "missing-dependency";
    case Cause::out_of_memory:
        return "out-of-memory";
    case Cause::bad_input:
    case Cause::unsupported:
        return "bad-input";
    case Cause::diverged:
        return "diverged";
    default:
        return "crash";
    }
}

}  // namespace transect
