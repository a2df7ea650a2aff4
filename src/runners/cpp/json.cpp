#include "json.hpp"

#include <fstream>

#include "failure.hpp"

namespace transect {

Json read_json(const std::filesystem::path& path) {
    std::ifstream file(path);
    if (!file || std::filesystem::is_directory(path)) {
        throw BadInput(path.string() + ": expected a JSON file that can be read");
    }
    try {
        return Json::parse(file);
    } catch (const Json::exception& error) {
        throw BadInput(path.string() + ": expected a JSON file: " + error.what());
    }
}

std::string line_of(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string shown(const Json& value) {
    constexpr std::size_t most = 300;
    std::string text = line_of(value);
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

const Json* entry_of(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

const std::string* text_of(const Json& object, const char* key) {
    const auto* value = entry_of(object, key);
    const auto* text = value ? value->get_ptr<const std::string*>() : nullptr;
    return text && text->find('\0') == std::string::npos ? text : nullptr;
}

}  // namespace transect
