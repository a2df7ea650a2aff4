// A portable training step's folder: docs/portable-training-step.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dtypes.hpp"

namespace transect {

enum GraphKind : std::size_t { step_graph, accumulate_graph, graph_kinds };

// A tensor of the data or of the state.
struct Described {
    std::string name;
    const Dtype* dtype = nullptr;
    std::vector<std::optional<std::int64_t>> shape;  // nothing where the manifest has a name
    std::size_t bytes = 0;                           // of the whole tensor: state only
    std::optional<std::string> next;  // state only: the output with its next value; none: it stays

    // Of the state, where every size is known.
    std::vector<std::int64_t> sizes() const;
};

struct Hyper {
    std::string name;
    double value;
};

struct Graph {
    std::filesystem::path file;
    std::vector<std::string> inputs, outputs;

    bool takes(const std::string& name) const;
    bool gives(const std::optional<std::string>& name) const;
};

struct Step {
    std::string graph_hash;
    std::filesystem::path state_file;
    std::vector<Described> data, state;
    std::vector<Hyper> hyper;  // with the defaults
    std::optional<std::string> seed;
    std::vector<Described> metrics;  // the first is the loss
    std::size_t counter = 0;         // which of the state: how many updates are done
    std::array<Graph, graph_kinds> graphs;
    bool accumulates = false;  // whether the second of them is there
};

// Raises BadInput naming the manifest and what it lacks.
Step read_step(const std::filesystem::path& folder, bool accumulates);

}  // namespace transect
