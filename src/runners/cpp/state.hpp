// State files of a portable training step: safetensors.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "step.hpp"

namespace transect {

// Where the bytes of each tensor of the step are, in host memory.
using StateBytes = std::vector<const char*>;

// A state as it was read.
struct State {
    std::vector<char> file;
    StateBytes tensors;  // within the file
};

// Reads any valid safetensors file that holds this step's state, all of it finite. Raises BadInput.
State read_state(const std::filesystem::path& path, const Step& step);

// The name of the first tensor with a number that is not finite.
std::optional<std::string> not_finite(const Step& step, const StateBytes& state);

// Writes the one canonical form, at once or not at all, also when power goes. Raises Failure.
void write_state(const std::filesystem::path& path, const Step& step, const StateBytes& state);

// Removes temporary files of this checkpoint that killed runs left; of runs that go on they stay.
void remove_left(const std::filesystem::path& path);

}  // namespace transect
