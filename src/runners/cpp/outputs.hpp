// The output tensors: `output-0.bin`, … and `header.json` in a folder.

#pragma once

#include <filesystem>

#include "session.hpp"

namespace transect {

// Runs every row once, the last batch perhaps partial, and writes what comes out, batches joined
// along their first axis. The folder is made.
void write_outputs(Session& session, const Inputs& inputs, const std::filesystem::path& folder);

// Raises Failure when it is not there and cannot be made.
void make_folder(const std::filesystem::path& folder);

}  // namespace transect
