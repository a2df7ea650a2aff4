// JSON files, and values in messages.

#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace transect {

// Keeps the order of an object's entries.
using Json = nlohmann::ordered_json;

// Raises BadInput naming the file.
Json read_json(const std::filesystem::path& path);

// The value as JSON, cut to what a message can hold.
std::string shown(const Json& value);

// The text of an object's entry, or null where it is none or holds a NUL.
const std::string* text_of(const Json& object, const char* key);

// A null entry is none, as if the key were not there.
const Json* entry_of(const Json& object, const char* key);

// One line; bytes that are no UTF-8, as a path may have, are replaced.
std::string line_of(const Json& value);

}  // namespace transect
