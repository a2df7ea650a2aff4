#include "outputs.hpp"

#include <algorithm>
#include <fstream>
#include <memory>

#include "failure.hpp"
#include "json.hpp"

namespace transect {

namespace {

// One output's file while it grows.
class File {
public:
    File(const std::filesystem::path& folder, std::string name, const Output& first)
        : name_(std::move(name)), path_(folder / name_), dtype_(first.dtype), shape_(first.shape) {
        if (!shape_.empty()) shape_[0] = 0;
        stream_.open(path_, std::ios::binary);
        if (!stream_) throw Failure(Cause::crash, path_.string() + ": cannot be written");
    }

    // `rows`: how many entries the first axis must have, 0 for any.
    void append(const Output& output, std::size_t rows) {
        const auto& shape = output.shape;
        const bool fits =
            output.dtype == dtype_ && shape.size() == shape_.size() &&
            (rows == 0 || (!shape.empty() && static_cast<std::size_t>(shape[0]) == rows)) &&
            (shape.empty() || std::equal(shape.begin() + 1, shape.end(), shape_.begin() + 1));
        if (!fits) {
            throw BadInput("output '" + output.name + "' has shape " + Json(shape).dump() +
                           ", expected a first axis of " + std::to_string(rows) +
                           " and otherwise one shape and type for every batch");
        }
        if (!shape.empty()) shape_[0] += shape[0];
        output.dtype->is_string() ? write_strings(output) : write(output.data.data(), output.bytes);
    }

    Json close(const std::string& name) {
        stream_.close();
        if (!stream_) throw Failure(Cause::crash, path_.string() + ": cannot be written");
        return {{"name", name}, {"dtype", dtype_->name}, {"shape", shape_}, {"file", name_}};
    }

private:
    void write(const void* bytes, std::size_t size) {
        stream_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    }

    void write_strings(const Output& output) {
        for (std::size_t i = 0; i < output.elements; ++i) {
            const bool last = i + 1 == output.elements;
            const auto end = last ? output.bytes : output.offsets[i + 1];
            const auto size = static_cast<std::uint32_t>(end - output.offsets[i]);
            write(&size, sizeof size);
            write(output.data.data() + output.offsets[i], size);
        }
    }

    std::string name_;
    std::filesystem::path path_;
    const Dtype* dtype_;
    std::vector<std::int64_t> shape_;
    std::ofstream stream_;
};

}  // namespace

void make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!std::filesystem::is_directory(folder)) {
        throw Failure(Cause::crash,
                      folder.string() + ": cannot make this folder: " + error.message());
    }
}

void write_outputs(Session& session, const Inputs& inputs, const std::filesystem::path& folder) {
    const auto& outputs = session.outputs();
    // Null: no tensor.
    std::vector<std::unique_ptr<File>> files(outputs.size());
    make_folder(folder);
    for (const auto cut : inputs.all()) {
        session.run(inputs, cut);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto& output = outputs[i];
            const bool is_tensor = output.dtype != nullptr;
            if (cut.first == 0 && is_tensor) {
                files[i] =
                    std::make_unique<File>(folder, "output-" + std::to_string(i) + ".bin", output);
            }
            if (is_tensor != (files[i] != nullptr)) {
                throw BadInput("output '" + output.name + "': a tensor for some batches only");
            }
            if (is_tensor) files[i]->append(output, cut.rows);
        }
    }
    Json entries = Json::array();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& [name, kind] = std::tie(outputs[i].name, outputs[i].kind);
        entries.push_back(files[i] ? files[i]->close(name) : Json{{"name", name}, {"kind", kind}});
    }
    std::ofstream header(folder / "header.json");
    header << line_of(Json{{"tensors", entries}}) << '\n' << std::flush;
    if (!header) {
        throw Failure(Cause::crash, (folder / "header.json").string() + ": cannot be written");
    }
}

}  // namespace transect
