#include <fstream>

#include "failure.hpp"
#include "json.hpp"
#include "modes.hpp"
#include "outputs.hpp"

namespace transect {

namespace {

struct Case {
    std::string name;
    std::filesystem::path model, inputs, outputs;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
    const auto list = read_json(path);
    if (!list.is_array()) throw BadInput(path.string() + ": expected a JSON list of cases");
    std::vector<Case> cases;
    for (const auto& entry : list) {
        const auto text = [&](const char* key) {
            if (const auto* found = text_of(entry, key)) return *found;
            throw BadInput(path.string() + ": case " + std::to_string(cases.size()) +
                           ": expected the text " + key + ", got " + shown(entry));
        };
        cases.push_back({text("name"), text("model"), text("inputs"), text("outputs")});
    }
    return cases;
}

void run_case(Runtime& runtime, const Arguments& given, const Options& options, const Case& one) {
    Inputs inputs(one.inputs);
    // One run of the whole tensors: batches are for measuring.
    inputs.forget_batch();
    Session session(runtime.environment(), one.model, given.provider, options);
    session.require_inputs(inputs.names());
    write_outputs(session, inputs, one.outputs);
}

// Runs a case; returns what the line after it says. A provider that is not there ends it all.
Record verdict(Runtime& runtime, const Arguments& given, const Options& options, const Case& one) {
    try {
        run_case(runtime, given, options, one);
        return {{"status", "ok"}};
    } catch (const std::exception& error) {
        const auto failure = as_failure(error);
        if (failure.cause() == Cause::no_provider) throw failure;
        const bool unsupported = failure.cause() == Cause::unsupported;
        return {{"status", unsupported ? "unsupported" : "failed"}, {"message", failure.what()}};
    }
}

}  // namespace

void run_cases(Runtime& runtime, const Arguments& given, const Options& options) {
    const auto cases = read_cases(given.cases);
    if (given.record.has_parent_path()) make_folder(given.record.parent_path());
    std::ofstream file(given.record, std::ios::app);
    const auto say = [&](Record line, const Record& more) {
        line.update(more);
        file << line_of(line) << '\n' << std::flush;
        if (!file) {
            throw Failure(Cause::crash, "--record " + given.record.string() + ": cannot be written");
        }
    };
    for (std::size_t i = given.skip; i < cases.size(); ++i) {
        const Record line{{"case", i}, {"name", cases[i].name}};
        say(line, {{"status", "started"}});
        say(line, verdict(runtime, given, options, cases[i]));
    }
}

}  // namespace transect
