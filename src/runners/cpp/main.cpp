// ONNX Runtime's C++ API under the runner contract: docs/runner-contract.md.

#include <iostream>

#include "cuda.hpp"
#include "failure.hpp"
#include "modes.hpp"
#include "utf8.hpp"

namespace transect {

namespace {

// One line on standard error.
void say(const Failure& failure) {
    const bool skipped = failure.cause() == Cause::no_provider;
    std::cerr << "cpp: " << (skipped ? "skipped: " : "") << as_line(failure.what()) << '\n';
}

// Returns the record's fields, none in mode `cases`.
Record run(const Arguments& given) {
    // A provider that is not there is found before anything else.
    if (given.provider == Provider::cuda) cuda::require_device();
    const Options options(given.options);
    if (given.mode == Mode::cases) {
        Runtime runtime(given.library);
        run_cases(runtime, given, options);
        return Record::object();
    }
    const Inputs inputs(given.inputs);
    Runtime runtime(given.library);
    try {
        auto record = given.mode == Mode::latency ? run_latency(runtime, given, options, inputs)
                      : given.mode == Mode::load  ? run_load(runtime, given, options, inputs)
                                                  : run_train(runtime, given, options, inputs);
        record.update(conditions(runtime, options, given));
        return record;
    } catch (Diverged& diverged) {
        diverged.fields.update(conditions(runtime, options, given));
        throw;
    }
}

Record fields_of(const Failure& failure) {
    if (failure.cause() == Cause::no_provider) {
        return {{"status", "skipped"}, {"reason", failure.what()}};
    }
    return {
        {"status", "failed"},
        {"cause", cause_word(failure.cause())},
        {"message", failure.what()},
    };
}

int run_program(const std::vector<std::string>& words) {
    auto record_file = find_record(words);
    Record head{{"runner", "cpp"}};
    try {
        const auto given = read_arguments(words);
        // Of cases the record is what came of each: a fault is told by message and exit code.
        if (given.mode == Mode::cases) record_file.reset();
        head.update({{"mode", given.mode_name}, {"provider_requested", given.provider_name}});
        auto record = head;
        record["status"] = "ok";
        record.update(run(given));
        if (record_file) write_record(record, *record_file);
        return 0;
    } catch (const std::exception& error) {
        const auto failure = as_failure(error);
        say(failure);
        head.update(fields_of(failure));
        if (auto* diverged = dynamic_cast<const Diverged*>(&error)) head.update(diverged->fields);
        if (record_file) write_record(head, *record_file);
        return exit_code(failure.cause());
    }
}

}  // namespace

}  // namespace transect

int main(int argc, char** argv) {
    try {
        return transect::run_program({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        // Only the record of a failure can still have failed.
        const auto failure = transect::as_failure(error);
        transect::say(failure);
        return transect::exit_code(failure.cause());
    }
}
