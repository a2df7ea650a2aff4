// ONNX Runtime's library, one session and its runs.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "plan.hpp"

// CLOCK_MONOTONIC.
using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

inline std::int64_t between(Clock::time_point begin, Clock::time_point end) {
    return Nanoseconds(end - begin).count();
}

struct Runtime {
    std::string version;
    Ort::Env environment;
};

// Loads the shared library. Raises Failure, missing-dependency.
Runtime load_runtime(const std::string& library);

// One output of the last run, in host memory of the program's own.
struct Output {
    const char* name = nullptr;
    // Undefined: no tensor.
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::vector<std::int64_t> shape;
    std::size_t elements = 0;
    std::size_t bytes = 0;  // of data, whose end may be of an earlier run
    std::vector<char> data;
    std::vector<std::size_t> offsets;  // texts: where each begins in data
};

// The parts of one iteration, in nanoseconds.
struct Times {
    std::int64_t bind, run, copy;
};

struct Session {
    // Of a model or a graph. `profile`: the prefix of a profile's file. Raises Failure and
    // Ort::Exception.
    Session(Ort::Env& environment, const Plan& plan, const entry* model,
            const char* profile = nullptr);

    // Binds, runs, and copies the results into `outputs`.
    Times run(const Inputs& inputs, Cut cut);

    Ort::Session handle{nullptr};
    Ort::IoBinding binding{nullptr};
    Ort::MemoryInfo host, output_memory;  // the program's own, the provider's device
    Ort::AllocatorWithDefaultOptions allocator;
    std::int64_t created_ns = 0;  // how long that took
    std::vector<Output> outputs;

private:
    void bind(const Inputs& inputs, Cut cut);
    void copy();
};
