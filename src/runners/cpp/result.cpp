#include "result.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include "plan.hpp"

namespace {

// By cause: the exit code, and the word in the last line.
constexpr std::pair<int, const char*> endings[] = {
    {1, "crash"},     {1, "missing-dependency"}, {1, "out-of-memory"},
    {2, "bad-input"}, {2, "bad-input"},          {3, "skipped"},
};

const auto& ending(const Failure& failure) { return endings[static_cast<int>(failure.cause)]; }

Cause cause_of(OrtErrorCode code, const std::string& message) {
    auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
    if (says("bad_alloc") || says("Failed to allocate memory")) return Cause::out_of_memory;
    const bool refused = code == ORT_INVALID_ARGUMENT || code == ORT_NO_SUCHFILE ||
                         code == ORT_NO_MODEL || code == ORT_INVALID_PROTOBUF ||
                         code == ORT_INVALID_GRAPH;
    // A file that is no model, or one of an unknown opset, is only FAIL.
    const bool no_model = says("ModelProto") || says("Load model");
    return refused || no_model ? Cause::bad_input : Cause::crash;
}

std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

Failure::Failure(Cause cause, std::string message)
    : std::runtime_error(one_line(std::move(message))), cause(cause) {}

Failure as_failure(const std::exception& error) {
    if (auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
    if (auto* said = dynamic_cast<const Ort::Exception*>(&error)) {
        const std::string message = said->what();
        return {cause_of(said->GetOrtErrorCode(), message), "ONNX Runtime: " + message};
    }
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return {memory ? Cause::out_of_memory : Cause::crash, error.what()};
}

int exit_code(const Failure& failure) { return ending(failure).first; }

std::string json(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c >= 0 && c < ' ') {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            quoted += escape;
            continue;
        }
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return quoted + '"';
}

std::string json(const std::vector<std::int64_t>& numbers) {
    std::string list;
    for (const auto number : numbers) list += (list.empty() ? "" : ", ") + json(number);
    return "[" + list + "]";
}

Fields fields_of(const Failure& failure) {
    if (failure.cause == Cause::no_provider) {
        return {{"status", json("skipped")}, {"reason", json(failure.what())}};
    }
    return {{"status", json("failed")},
            {"cause", json(ending(failure).second)},
            {"message", json(failure.what())}};
}

void write_file(const std::string& path, int flags, const std::vector<std::string_view>& parts,
                bool to_disk) {
    const int file = open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool good = file >= 0;
    for (auto bytes : parts) {
        while (good && !bytes.empty()) {
            const auto written = write(file, bytes.data(), bytes.size());
            good = written >= 0 || errno == EINTR;
            if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    good = good && (!to_disk || fsync(file) == 0);
    // A file server may refuse what was written only now.
    good = good && close(file) == 0;
    if (!good) throw Failure(Cause::crash, path + ": cannot be written: " + std::strerror(errno));
}

void Result::say(const Fields& fields) const {
    std::string line;
    for (const auto& [name, value] : fields) {
        line += (line.empty() ? "{" : ", ") + json(name) + ": " + value;
    }
    write_file(path("result.jsonl"), O_APPEND, {line + "}\n"});
}

void Result::write_process() const {
    for (const std::string name : {"status", "maps"}) {
        std::ifstream stream("/proc/self/" + name);
        write(name + ".txt", std::vector<char>{std::istreambuf_iterator<char>(stream), {}});
    }
}
