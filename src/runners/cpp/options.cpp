#include "options.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "json.hpp"

namespace transect {

namespace {

const std::unordered_map<std::string, ExecutionMode> modes{
    {"sequential", ORT_SEQUENTIAL},
    {"parallel", ORT_PARALLEL},
};
const std::unordered_map<std::string, GraphOptimizationLevel> levels{
    {"disabled", ORT_DISABLE_ALL},
    {"basic", ORT_ENABLE_BASIC},
    {"extended", ORT_ENABLE_EXTENDED},
    {"all", ORT_ENABLE_ALL},
};

template <typename Choice>
bool is_among(const std::unordered_map<std::string, Choice>& choices, const Json& value) {
    return value.is_string() && choices.count(value.get<std::string>()) > 0;
}

bool is_count(const Json& value) {
    return value.is_number_unsigned() &&
           value.get<std::uint64_t>() <= std::numeric_limits<int>::max();
}

// ONNX Runtime takes texts that end with a NUL.
bool is_text(const Json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

bool is_texts(const Json& value) {
    if (!value.is_object()) return false;
    for (const auto& [key, text] : value.items()) {
        if (!is_text(text) || key.find('\0') != std::string::npos) return false;
    }
    return true;
}

struct Option {
    std::string name;
    std::string expected;
    bool (*good)(const Json& value);
    void (*apply)(Ort::SessionOptions& to, const Json& value);
};

const std::vector<Option> known{
    {"intra_op_num_threads", "a whole number >= 0", is_count,
     [](auto& to, auto& value) { to.SetIntraOpNumThreads(value.template get<int>()); }},
    {"inter_op_num_threads", "a whole number >= 0", is_count,
     [](auto& to, auto& value) { to.SetInterOpNumThreads(value.template get<int>()); }},
    {"execution_mode", "sequential or parallel",
     [](const Json& value) { return is_among(modes, value); },
     [](auto& to, auto& value) {
         to.SetExecutionMode(modes.at(value.template get<std::string>()));
     }},
    {"graph_optimization_level", "disabled, basic, extended or all",
     [](const Json& value) { return is_among(levels, value); },
     [](auto& to, auto& value) {
         to.SetGraphOptimizationLevel(levels.at(value.template get<std::string>()));
     }},
    {"enable_cpu_mem_arena", "true or false", [](const Json& value) { return value.is_boolean(); },
     [](auto& to, auto& value) {
         value.template get<bool>() ? to.EnableCpuMemArena() : to.DisableCpuMemArena();
     }},
    {"enable_mem_pattern", "true or false", [](const Json& value) { return value.is_boolean(); },
     [](auto& to, auto& value) {
         value.template get<bool>() ? to.EnableMemPattern() : to.DisableMemPattern();
     }},
    // Applied with the provider.
    {"provider_options", "an object of texts", is_texts, [](auto&, auto&) {}},
};

const Option* find(const std::string& name) {
    for (const auto& option : known) {
        if (option.name == name) return &option;
    }
    return nullptr;
}

bool is_entry(const std::string& name) {
    return name.find('.') != std::string::npos && name.find('\0') == std::string::npos;
}

// What was expected instead, empty when the value is good.
std::string expected(const std::string& name, const Json& value) {
    if (const auto* option = find(name)) return option->good(value) ? "" : option->expected;
    if (is_entry(name)) return is_text(value) ? "" : "a text";
    std::string names;
    for (const auto& option : known) names += option.name + ", ";
    return names + "or a name with a dot";
}

}  // namespace

Options::Options(const std::optional<std::filesystem::path>& file) {
    if (!file) return;
    const Json given = read_json(*file);
    if (!given.is_object()) throw BadInput(file->string() + ": expected a JSON object");
    for (const auto& [name, value] : given.items()) {
        if (value.is_null()) continue;
        if (const auto wanted = expected(name, value); !wanted.empty()) {
            throw BadInput(file->string() + ": option '" + name + "' is " + shown(value) +
                           ", expected " + wanted);
        }
        set_[name] = value;
    }
}

void Options::apply(Ort::SessionOptions& to) const {
    for (const auto& [name, value] : set_.items()) {
        if (const auto* option = find(name)) {
            option->apply(to, value);
        } else {
            to.AddConfigEntry(name.c_str(), value.get_ref<const std::string&>().c_str());
        }
    }
}

Json Options::set(Provider provider) const {
    auto told = set_;
    if (provider == Provider::cpu) told.erase("provider_options");
    return told;
}

Json Options::not_set(Provider provider) const {
    auto names = Json::array();
    if (provider == Provider::cpu && !of_provider().empty()) names.push_back("provider_options");
    return names;
}

std::unordered_map<std::string, std::string> Options::of_provider() const {
    const auto found = set_.find("provider_options");
    if (found == set_.end()) return {};
    return found->get<std::unordered_map<std::string, std::string>>();
}

}  // namespace transect
