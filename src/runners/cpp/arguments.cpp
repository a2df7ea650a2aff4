#include "arguments.hpp"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "failure.hpp"

namespace transect {

namespace {

std::size_t whole(const std::string& name, const std::string& text, std::size_t least) {
    std::size_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc() && stop == end && value >= least &&
                      value <= std::numeric_limits<int>::max();
    if (good) return value;
    throw BadInput(name + " '" + text + "': expected a whole number >= " + std::to_string(least));
}

double seconds(const std::string& name, const std::string& text) {
    std::size_t used = 0;
    double value = -1;
    try {
        value = std::stod(text, &used);
    } catch (const std::logic_error&) {
        used = 0;
    }
    if (used > 0 && used == text.size() && std::isfinite(value) && value >= 0) return value;
    throw BadInput(name + " '" + text + "': expected seconds >= 0");
}

template <typename Choice>
Choice choose(const std::string& name, const std::string& text,
              const std::vector<std::pair<std::string, Choice>>& choices) {
    std::string names;
    for (const auto& [word, choice] : choices) {
        if (word == text) return choice;
        names += (names.empty() ? "" : ", ") + word;
    }
    throw BadInput(name + " '" + text + "': expected one of " + names);
}

using Setter = std::function<void(const std::string& name, const std::string& text)>;

std::map<std::string, Setter> setters(Arguments& given) {
    auto path = [](std::filesystem::path& to) {
        return [&to](const std::string&, const std::string& text) { to = text; };
    };
    auto number = [](std::size_t& to, std::size_t least) {
        return [&to, least](const std::string& name, const std::string& text) {
            to = whole(name, text, least);
        };
    };
    return {
        {"--mode", [&](auto& name, auto& text) {
            given.mode = choose<Mode>(name, text, {{"latency", Mode::latency},
                                                   {"load", Mode::load},
                                                   {"cases", Mode::cases},
                                                   {"train", Mode::train}});
            given.mode_name = text;
        }},
        {"--provider", [&](auto& name, auto& text) {
            given.provider = choose<Provider>(name, text, {{"cpu", Provider::cpu},
                                                           {"cuda", Provider::cuda}});
            given.provider_name = text;
        }},
        {"--model", path(given.model)},
        {"--inputs", path(given.inputs)},
        {"--outputs", path(given.outputs)},
        {"--library", path(given.library)},
        {"--record", path(given.record)},
        {"--arrivals", path(given.arrivals)},
        {"--cases", path(given.cases)},
        {"--step", path(given.step)},
        {"--order", path(given.order)},
        {"--checkpoint", path(given.checkpoint)},
        {"--state", [&](auto&, auto& text) { given.state = text; }},
        {"--schedule", [&](auto&, auto& text) { given.schedule = text; }},
        {"--batch", number(given.batch, 1)},
        {"--until", [&](auto& name, auto& text) { given.until = whole(name, text, 0); }},
        {"--checkpoint-every", number(given.checkpoint_every, 0)},
        {"--accumulate", number(given.accumulate, 1)},
        {"--seed", number(given.seed, 0)},
        {"--options", [&](auto&, auto& text) { given.options = text; }},
        {"--profile", [&](auto&, auto& text) { given.profile = text; }},
        {"--warmup", number(given.warmup, 0)},
        {"--min-runs", number(given.min_runs, 1)},
        {"--sessions", number(given.sessions, 1)},
        {"--skip", number(given.skip, 0)},
        {"--max-seconds", [&](auto& name, auto& text) { given.max_seconds = seconds(name, text); }},
    };
}

void require_complete(const Arguments& given) {
    auto needs = [&](const char* name, const std::filesystem::path& path) {
        if (path.empty()) throw BadInput("--mode " + given.mode_name + " needs " + name);
    };
    needs("--record", given.record);
    needs("--library", given.library);
    if (!std::filesystem::is_regular_file(given.library)) {
        throw BadInput("--library " + given.library.string() + ": no such file");
    }
    if (given.mode == Mode::cases) return needs("--cases", given.cases);
    if (given.mode == Mode::train) {
        needs("--step", given.step);
        needs("--inputs", given.inputs);
        needs("--order", given.order);
        needs("--checkpoint", given.checkpoint);
        if (given.batch == 0) throw BadInput("--mode train needs --batch");
        if (!given.until) throw BadInput("--mode train needs --until");
        return;
    }
    needs("--model", given.model);
    needs("--inputs", given.inputs);
    needs("--outputs", given.outputs);
    if (given.mode == Mode::load) needs("--arrivals", given.arrivals);
    if (!std::filesystem::is_regular_file(given.model)) {
        throw BadInput(given.model.string() + ": no such model file");
    }
}

}  // namespace

std::optional<std::filesystem::path> find_record(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == "--record" && !words[i + 1].empty()) return words[i + 1];
    }
    return std::nullopt;
}

Arguments read_arguments(const std::vector<std::string>& words) {
    Arguments given;
    auto left = setters(given);
    const auto known = left;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const std::string& name = words[i];
        if (known.count(name) == 0) throw BadInput("unknown argument '" + name + "'");
        if (i + 1 == words.size()) throw BadInput(name + ": expected a value after it");
        const auto setter = left.extract(name);
        if (setter.empty()) throw BadInput(name + " is there twice");
        setter.mapped()(name, words[i + 1]);
    }
    require_complete(given);
    return given;
}

}  // namespace transect
