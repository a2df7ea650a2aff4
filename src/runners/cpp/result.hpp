// What the program leaves: raw arrays, lines of JSON, and how it ended.

#pragma once

#include <fcntl.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// `unsupported`: a value that this program cannot give or take.
enum class Cause { crash, missing_dependency, out_of_memory, bad_input, unsupported, no_provider };

struct Failure : std::runtime_error {
    // The message becomes one line.
    Failure(Cause cause, std::string message);

    Cause cause;
};

// Any exception as a failure: ONNX Runtime's are told apart by their code.
Failure as_failure(const std::exception& error);
int exit_code(const Failure& failure);

// A value as JSON.
std::string json(std::string_view text);
inline std::string json(std::int64_t number) { return std::to_string(number); }
std::string json(const std::vector<std::int64_t>& numbers);

// An object's fields in their order, values as JSON.
using Fields = std::vector<std::pair<std::string, std::string>>;
// The last line of a run that failed.
Fields fields_of(const Failure& failure);

// Writes a file: O_TRUNC anew, O_APPEND behind what is there. `to_disk`: returns when it is there.
// Raises Failure, crash, in the system's words.
void write_file(const std::string& path, int flags, const std::vector<std::string_view>& parts,
                bool to_disk = false);

// The folder for all but outputs.
struct Result {
    std::string path(const std::string& name) const { return folder + "/" + name; }

    // Appends a line of `result.jsonl`.
    void say(const Fields& fields) const;

    template <typename Row>
    void write(const std::string& name, const std::vector<Row>& rows) const {
        const auto* bytes = reinterpret_cast<const char*>(rows.data());
        write_file(path(name), O_TRUNC, {std::string_view(bytes, rows.size() * sizeof(Row))});
    }

    // What the kernel says of this process now.
    void write_process() const;

    std::string folder;
};
