// ONNX Runtime's shared library, loaded at run time, and its environment.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ort.hpp"

namespace transect {

class Runtime {
public:
    // Raises Failure, missing-dependency, when the library cannot be used.
    explicit Runtime(const std::filesystem::path& library);

    Ort::Env& environment() noexcept { return *environment_; }
    const std::string& version() const noexcept { return version_; }
    // Where the library lies in memory: tells its file.
    const void* address() const noexcept { return address_; }

private:
    const void* address_ = nullptr;
    std::string version_;
    // Even an empty Env asks the library to release it.
    std::optional<Ort::Env> environment_;
};

}  // namespace transect
