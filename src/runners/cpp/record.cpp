#include "record.hpp"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "failure.hpp"
#include "json.hpp"
#include "outputs.hpp"

namespace transect {

namespace {

#ifdef __clang__
constexpr const char* language_version = "C++17, " __VERSION__;
#else
constexpr const char* language_version = "C++17, GCC " __VERSION__;
#endif

// What /proc/self/status has under a name; nothing where the system does not tell.
std::optional<std::string> status_value(const std::string& key) {
    const std::string name = key + ":";
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, name.size(), name) != 0) continue;
        const auto begin = line.find_first_not_of(" \t", name.size());
        return begin == std::string::npos ? "" : line.substr(begin);
    }
    return std::nullopt;
}

// Null where the system does not tell.
Record allowed_cpus() {
    const auto text = status_value("Cpus_allowed_list");
    return text ? Record(*text) : Record(nullptr);
}

// The file that is mapped at an address; null where the system does not tell.
Record mapped_file(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::uintptr_t begin = 0, end = 0;
        char dash = 0;
        words >> std::hex >> begin >> dash >> end;
        const auto path = line.find('/');
        if (words && begin <= wanted && wanted < end && path != std::string::npos) {
            return line.substr(path);
        }
    }
    return nullptr;
}

}  // namespace

Record conditions(const Runtime& runtime, const Options& options, const Arguments& given) {
    return {
        {"runtime_version", runtime.version()},
        {"build_info", Ort::GetBuildInfoString()},
        {"language_version", language_version},
        {"provider_used", given.provider_name},
        {"session_options", options.set(given.provider)},
        {"options_not_set", options.not_set(given.provider)},
        {"run_includes", Record::array()},
        {"input_residency", "host"},
        {"cpus_allowed", allowed_cpus()},
        {"library_file", mapped_file(runtime.address())},
    };
}

Record peak_memory() {
    std::istringstream words(status_value("VmHWM").value_or(""));
    std::int64_t kilobytes = 0;
    std::string unit;
    return words >> kilobytes >> unit && unit == "kB" ? Record(kilobytes * 1024) : Record(nullptr);
}

Record outputs_in(const std::filesystem::path& folder, const Inputs& inputs) {
    const Record rows = inputs.has_batch() ? Record(inputs.rows()) : Record(nullptr);
    return {
        {"outputs", {{"header", (folder / "header.json").string()}, {"rows", rows}}},
    };
}

void write_record(const Record& record, const std::filesystem::path& path) {
    if (path.has_parent_path()) make_folder(path.parent_path());
    auto temporary = path;
    temporary.replace_filename("." + path.filename().string() + "." + std::to_string(getpid()));
    std::ofstream file(temporary);
    file << line_of(record) << '\n' << std::flush;
    std::error_code error;
    if (file) std::filesystem::rename(temporary, path, error);
    if (!file || error) {
        std::filesystem::remove(temporary, error);
        throw Failure(Cause::crash, "--record " + path.string() + ": cannot be written");
    }
}

}  // namespace transect
