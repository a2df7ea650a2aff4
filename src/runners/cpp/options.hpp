// The session options of docs/runner-contract.md.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "arguments.hpp"
#include "json.hpp"
#include "ort.hpp"

namespace transect {

class Options {
public:
    // Nothing is set without a file. Raises BadInput naming the option.
    explicit Options(const std::optional<std::filesystem::path>& file);

    // Sets what is set, except `provider_options`.
    void apply(Ort::SessionOptions& to) const;

    // Empty when not set.
    std::unordered_map<std::string, std::string> of_provider() const;

    // What is set, by the contract's names and in the file's order.
    Json set(Provider provider) const;

    // Names of what is given and not set: the provider `cpu` has no options of its own.
    Json not_set(Provider provider) const;

private:
    Json set_ = Json::object();
};

}  // namespace transect
