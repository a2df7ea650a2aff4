// One session and its runs.

#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "inputs.hpp"
#include "options.hpp"
#include "ort.hpp"

namespace transect {

// CLOCK_MONOTONIC.
using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

// One output of the last run, in host memory of the program's own.
struct Output {
    std::string name;
    std::string kind;  // what the model declares, in words for people
    const Dtype* dtype = nullptr;  // null: no tensor
    std::vector<std::int64_t> shape;
    std::size_t elements = 0;
    std::size_t bytes = 0;  // of data, whose end may be of an earlier run
    std::vector<std::byte> data;
    std::vector<std::size_t> offsets;  // strings: where each begins in data
};

// The parts of one iteration.
struct Times {
    Nanoseconds bind, run, copy;
};

class Session {
public:
    // `profile`: the prefix of a profile's file. Raises Failure and Ort::Exception.
    Session(Ort::Env& environment, const std::filesystem::path& model, Provider provider,
            const Options& options, const std::optional<std::string>& profile = std::nullopt);

    // How long creating it took.
    Nanoseconds created() const noexcept { return created_; }

    // Raises BadInput unless each name is an input of the model, or an initializer that one may
    // override, and each input that needs one has one: with I/O binding ONNX Runtime runs without.
    // Types and shapes are compared by it when it runs.
    void require_inputs(const std::vector<std::string>& given) const;

    // For bindings of one's own, and where the provider leaves outputs.
    Ort::Session& handle() noexcept { return session_; }
    const Ort::MemoryInfo& output_memory() const noexcept { return output_memory_; }

    // Binds, runs, and copies the results into `outputs`.
    Times run(const Inputs& inputs, Cut cut);

    const std::vector<Output>& outputs() const noexcept { return outputs_; }

    // Ends the profile and returns its file.
    std::string end_profile();

private:
    void bind(const Inputs& inputs, Cut cut);
    void copy();

    Ort::Session session_{nullptr};
    Ort::IoBinding binding_{nullptr};
    Ort::MemoryInfo host_;
    Ort::MemoryInfo output_memory_;  // the provider's device
    Ort::AllocatorWithDefaultOptions allocator_;
    Nanoseconds created_{};
    std::vector<Output> outputs_;
};

}  // namespace transect
