// The record of a run: one JSON object.

#pragma once

#include <filesystem>

#include "arguments.hpp"
#include "inputs.hpp"
#include "json.hpp"
#include "options.hpp"
#include "runtime.hpp"

namespace transect {

using Record = Json;

// What the runtime, the session options and the process are.
Record conditions(const Runtime& runtime, const Options& options, const Arguments& given);

// Where the outputs are, and how much memory the process has taken up to now.
Record outputs_and_memory(const std::filesystem::path& folder, const Inputs& inputs);

// Writes to a temporary name and renames; makes the folder. Raises Failure.
void write_record(const Record& record, const std::filesystem::path& path);

}  // namespace transect
