// Writing a state file: docs/portable-training-step.md says its every byte.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "failure.hpp"
#include "json.hpp"
#include "outputs.hpp"
#include "state.hpp"

namespace transect {

namespace {

std::string header_text(const Step& step) {
    Json header{{"__metadata__", {{"step_graph", step.graph_hash}}}};
    std::size_t end = 0;
    for (const auto& tensor : step.state) {
        const auto begin = end;
        end += tensor.bytes;
        header[tensor.name] = {{"dtype", tensor.dtype->tag},
                               {"shape", tensor.sizes()},
                               {"data_offsets", {begin, end}}};
    }
    std::string text = line_of(header);
    text.append(-text.size() % 8, ' ');
    return text;
}

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

// A descriptor that is closed in the end. Raises std::system_error, as all of it does.
class File {
public:
    File(const std::filesystem::path& path, int flags)
        : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
        if (descriptor_ < 0) fail();
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { ::close(descriptor_); }

    void write(const char* bytes, std::size_t count) {
        while (count > 0) {
            const auto written = ::write(descriptor_, bytes, count);
            if (written < 0 && errno != EINTR) fail();
            if (written <= 0) continue;
            bytes += written;
            count -= static_cast<std::size_t>(written);
        }
    }

    void sync() {
        if (fsync(descriptor_) != 0) fail();
    }

private:
    int descriptor_;
};

void write_content(File& file, const Step& step, const StateBytes& state) {
    const auto text = header_text(step);
    const std::uint64_t length = text.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file.write(text.data(), text.size());
    for (std::size_t i = 0; i < step.state.size(); ++i) file.write(state[i], step.state[i].bytes);
    file.sync();
}

}  // namespace

void remove_left(const std::filesystem::path& path) {
    const auto begin = "." + path.filename().string() + ".";
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const auto name = entry.path().filename().string();
        if (name.compare(0, begin.size(), begin) != 0 || name.size() == begin.size()) continue;
        const auto number = name.substr(begin.size());
        if (number.find_first_not_of("0123456789") != std::string::npos) continue;
        if (!std::filesystem::exists("/proc/" + number, ignored)) {
            std::filesystem::remove(entry.path(), ignored);
        }
    }
}

void write_state(const std::filesystem::path& path, const Step& step, const StateBytes& state) {
    auto temporary = path;
    temporary.replace_filename("." + path.filename().string() + "." + std::to_string(getpid()));
    const auto folder = path.has_parent_path() ? path.parent_path() : ".";
    make_folder(folder);
    try {
        {
            File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
            write_content(file, step, state);
        }
        std::filesystem::rename(temporary, path);
        // Makes the rename last.
        File(folder, O_RDONLY | O_DIRECTORY).sync();
    } catch (const std::system_error& error) {
        std::error_code ignored;
        std::filesystem::remove(temporary, ignored);
        throw Failure(Cause::crash, "--checkpoint " + path.string() +
                                        ": cannot be written: " + error.code().message());
    }
}

}  // namespace transect
