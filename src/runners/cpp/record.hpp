// The record of a run: one JSON object.

#pragma once

#include <filesystem>

#include "arguments.hpp"
#include "failure.hpp"
#include "inputs.hpp"
#include "json.hpp"
#include "options.hpp"
#include "runtime.hpp"

namespace transect {

using Record = Json;

// A number of a training is not finite; the record has its steps before.
class Diverged : public Failure {
public:
    Diverged(const std::string& message, Record fields)
        : Failure(Cause::diverged, message), fields(std::move(fields)) {}

    Record fields;
};

// What the runtime, the session options and the process are.
Record conditions(const Runtime& runtime, const Options& options, const Arguments& given);

// The most memory that this program had resident up to now, in bytes; null where the system does not
// tell. Unlike getrusage's, it does not begin with the peak of the process that started the program.
// To be asked before series are copied into a record.
Record peak_memory();

// Where the outputs are.
Record outputs_in(const std::filesystem::path& folder, const Inputs& inputs);

// Writes to a temporary name and renames; makes the folder. Raises Failure.
void write_record(const Record& record, const std::filesystem::path& path);

}  // namespace transect
