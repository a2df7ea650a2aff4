#include "step.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>

#include "../c/sha256.h"
#include "failure.hpp"
#include "json.hpp"

namespace transect {

namespace {

constexpr std::array<const char*, graph_kinds> graph_names{"step", "accumulate"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string text(const Json& object, const char* key) {
    const auto* found = text_of(object, key);
    if (!found) throw BadInput(std::string("expected a text as '") + key + "' in " + shown(object));
    return *found;
}

const Json& list(const Json& object, const char* key) {
    const auto* found = entry_of(object, key);
    if (!found || !found->is_array()) {
        throw BadInput(std::string("expected a list '") + key + "' in " + shown(object));
    }
    return *found;
}

Described read_described(const Json& entry) {
    Described tensor;
    tensor.name = text(entry, "name");
    tensor.dtype = dtype_of(text(entry, "dtype"));
    if (!tensor.dtype || tensor.dtype->is_string()) {
        throw BadInput("expected a dtype of numbers in " + shown(entry));
    }
    return tensor;
}

// The shape too, in which a name stands for any size.
Described read_tensor(const Json& entry) {
    auto tensor = read_described(entry);
    for (const auto& size : list(entry, "shape")) {
        const bool number = size.is_number_unsigned() &&
                            size.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
        if (!number && !size.is_string()) {
            throw BadInput("expected sizes >= 0 or names in the shape of " + shown(entry));
        }
        tensor.shape.push_back(number ? std::optional(size.get<std::int64_t>()) : std::nullopt);
    }
    return tensor;
}

Described read_state(const Json& entry) {
    auto tensor = read_tensor(entry);
    tensor.bytes = tensor.dtype->size;
    for (const auto& size : tensor.shape) {
        if (!size || __builtin_mul_overflow(tensor.bytes, *size, &tensor.bytes)) {
            throw BadInput("expected a shape that memory can hold in " + shown(entry));
        }
    }
    if (entry_of(entry, "next")) tensor.next = text(entry, "next");
    return tensor;
}

Hyper read_hyper(const Json& entry) {
    const auto* value = entry_of(entry, "default");
    if (!value || !value->is_number()) {
        throw BadInput("expected a number as default in " + shown(entry));
    }
    return {text(entry, "name"), value->get<double>()};
}

std::size_t find_counter(const Json& entries, const std::vector<Described>& state) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (text(entries[i], "role") == "counter") found.push_back(i);
    }
    const bool good = found.size() == 1 && state[found[0]].shape.empty() &&
                      state[found[0]].dtype->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    if (!good) throw BadInput("expected one counter in the state, an int64 scalar");
    return found[0];
}

std::vector<std::string> read_names(const Json& entries) {
    std::vector<std::string> names;
    for (const auto& name : entries) names.push_back(name.get<std::string>());
    return names;
}

// Every name is known, and all metrics come out.
void check_graph(const Step& step, const Graph& graph) {
    std::vector<std::string> known, made;
    for (const auto& tensor : step.data) known.push_back(tensor.name);
    for (const auto& hyper : step.hyper) known.push_back(hyper.name);
    if (step.seed) known.push_back(*step.seed);
    for (const auto& metric : step.metrics) made.push_back(metric.name);
    for (const auto& tensor : step.state) {
        known.push_back(tensor.name);
        if (tensor.next) made.push_back(*tensor.next);
    }
    const auto check = [&](const std::vector<std::string>& names,
                           const std::vector<std::string>& among) {
        for (const auto& name : names) {
            if (contains(among, name)) continue;
            throw BadInput(graph.file.string() + ": has '" + name + "', which nothing else names");
        }
    };
    check(graph.inputs, known);
    check(graph.outputs, made);
    for (const auto& metric : step.metrics) {
        if (graph.gives(metric.name)) continue;
        throw BadInput(graph.file.string() + ": expected an output '" + metric.name + "'");
    }
}

void read_graph(const std::filesystem::path& folder, const Json& root, GraphKind kind, Step& step) {
    const auto* graphs = entry_of(root, "graphs");
    const auto* entry = graphs ? entry_of(*graphs, graph_names[kind]) : nullptr;
    if (!entry) {
        throw BadInput(std::string("the step was made without the graph '") + graph_names[kind] +
                       "'");
    }
    step.graphs[kind] = {folder / text(*entry, "file"), read_names(list(*entry, "inputs")),
                         read_names(list(*entry, "outputs"))};
    check_graph(step, step.graphs[kind]);
}

template <typename Read>
auto read_all(const Json& entries, Read read) {
    std::vector<decltype(read(entries))> found;
    for (const auto& entry : entries) found.push_back(read(entry));
    return found;
}

// State files name the step by this sum: one bit altered would train another model in silence.
void check_sum(const Step& step) {
    const auto file = step.graphs[step_graph].file;
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    if (!stream) throw BadInput(file.string() + ": cannot be read");
    std::array<char, 65> found{};
    sha256_hex(bytes.data(), bytes.size(), found.data());
    if (step.graph_hash != found.data()) {
        throw BadInput(file.string() + " has the sha256 " + found.data() + ", expected " + step.graph_hash);
    }
}

Step read_manifest(const std::filesystem::path& folder, const Json& root, bool accumulates) {
    const auto* version = entry_of(root, "version");
    if (text(root, "format") != "transect-portable-step" || !version || *version != 1) {
        throw BadInput("expected the format transect-portable-step of version 1");
    }
    Step step;
    step.graph_hash = text(root, "step_graph");
    step.state_file = folder / text(root, "state_file");
    step.data = read_all(list(root, "data"), read_tensor);
    step.hyper = read_all(list(root, "hyper"), read_hyper);
    step.metrics = read_all(list(root, "metrics"), read_described);
    step.state = read_all(list(root, "state"), read_state);
    step.counter = find_counter(root["state"], step.state);
    step.accumulates = accumulates;
    if (const auto* seed = entry_of(root, "seed")) step.seed = text(*seed, "name");
    if (step.data.empty() || step.metrics.empty()) throw BadInput("expected data and metrics");
    for (const auto& metric : step.metrics) {
        if (metric.dtype->name == "float32" || metric.dtype->name == "float64") continue;
        throw BadInput("expected float32 or float64 for the metric '" + metric.name + "'");
    }
    read_graph(folder, root, step_graph, step);
    check_sum(step);
    if (accumulates) read_graph(folder, root, accumulate_graph, step);
    return step;
}

}  // namespace

std::vector<std::int64_t> Described::sizes() const {
    std::vector<std::int64_t> found;
    for (const auto& size : shape) found.push_back(*size);
    return found;
}

bool Graph::takes(const std::string& name) const { return contains(inputs, name); }

bool Graph::gives(const std::optional<std::string>& name) const {
    return name && contains(outputs, *name);
}

Step read_step(const std::filesystem::path& folder, bool accumulates) {
    const auto file = folder / "manifest.json";
    const Json root = read_json(file);
    try {
        return read_manifest(folder, root, accumulates);
    } catch (const Json::exception& error) {
        throw BadInput(file.string() + ": expected the manifest of a step: " + error.what());
    } catch (const BadInput& error) {
        throw BadInput(file.string() + ": " + error.what());
    }
}

}  // namespace transect
