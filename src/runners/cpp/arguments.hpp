// The command line of docs/runner-contract.md.

#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace transect {

enum class Mode { latency, load, cases, train };
enum class Provider { cpu, cuda };

struct Arguments {
    Mode mode = Mode::latency;
    Provider provider = Provider::cpu;
    std::string mode_name = "latency", provider_name = "cpu";
    std::filesystem::path model, inputs, outputs, library, record, arrivals, cases;
    std::filesystem::path step, order, checkpoint;
    std::optional<std::filesystem::path> options, state, schedule;
    std::optional<std::string> profile;
    std::size_t warmup = 20, min_runs = 100, sessions = 1, skip = 0;
    std::size_t batch = 0, checkpoint_every = 0, accumulate = 1, seed = 0;
    std::optional<std::size_t> until;
    double max_seconds = 1;
};

// The value of `--record`, however wrong the others are.
std::optional<std::filesystem::path> find_record(const std::vector<std::string>& words);

// Raises BadInput.
Arguments read_arguments(const std::vector<std::string>& words);

}  // namespace transect
