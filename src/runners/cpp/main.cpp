// ONNX Runtime's C++ API under the runner contract: docs/runner-contract.md.

#include <iostream>

#include "measure.hpp"

namespace {

#ifdef __clang__
constexpr const char* language_version = "C++17, " __VERSION__;
#else
constexpr const char* language_version = "C++17, GCC " __VERSION__;
#endif

Fields run(const Plan& plan, const Result& result) {
    auto runtime = load_runtime(plan.text(ROLE_LIBRARY));
    const std::string provider = plan.text(ROLE_PROVIDER);
    // Only CUDA's are set.
    const bool left_out = provider == "cpu" && plan.first(ROLE_PROVIDER_OPTION);
    Fields facts{
        {"status", json("ok")},
        {"runtime_version", json(runtime.version)},
        {"build_info", json(Ort::GetBuildInfoString())},
        {"language_version", json(language_version)},
        {"provider_used", json(provider)},
        {"options_not_set", left_out ? "[\"provider_options\"]" : "[]"},
        {"run_includes", "[]"},
    };
    const auto level = plan->level == LEVEL_LATENCY ? run_latency
                       : plan->level == LEVEL_LOAD  ? run_load
                       : plan->level == LEVEL_TRAIN ? run_train
                                                    : run_cases;
    for (auto& fact : level(runtime.environment, plan, result)) facts.push_back(std::move(fact));
    return facts;
}

void run_program(const char* file) {
    const Plan plan(file);
    const Result result{plan.text(ROLE_OUT)};
    try {
        result.say(run(plan, result));
    } catch (const std::exception& error) {
        const auto failure = as_failure(error);
        try {
            result.say(fields_of(failure));
        } catch (const Failure&) {
            // Where nothing can be written, standard error has it.
        }
        throw failure;
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) throw Failure(Cause::bad_input, "usage: transect-runner-cpp PLAN");
        run_program(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        const auto failure = as_failure(error);
        const bool skipped = failure.cause == Cause::no_provider;
        std::cerr << "cpp: " << (skipped ? "skipped: " : "") << failure.what() << '\n';
        return exit_code(failure);
    }
}
