#include "inputs.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "failure.hpp"
#include "json.hpp"
#include "utf8.hpp"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian");

namespace transect {

namespace {

using std::filesystem::path;

// Null when it has more bits than a size; 0 where any factor is 0.
std::optional<std::size_t> product(const std::int64_t* begin, const std::int64_t* end) {
    if (std::find(begin, end, 0) != end) return 0;
    std::size_t result = 1;
    for (auto factor = begin; factor != end; ++factor) {
        if (__builtin_mul_overflow(result, static_cast<std::size_t>(*factor), &result)) {
            return std::nullopt;
        }
    }
    return result;
}

void read_shape(const path& header, const Json& entry, Tensor& tensor) {
    const auto* shape = entry_of(entry, "shape");
    if (!shape || !shape->is_array()) {
        throw BadInput(header.string() + ": expected a shape of sizes >= 0, got " + shown(entry));
    }
    for (const auto& size : *shape) {
        if (!size.is_number_unsigned() ||
            size.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
            throw BadInput(header.string() + ": expected sizes >= 0 in the shape, got " +
                           shown(entry));
        }
        tensor.shape.push_back(size.get<std::int64_t>());
    }
    const auto* begin = tensor.shape.data();
    const auto* end = begin + tensor.shape.size();
    const auto elements = product(begin, end);
    if (!elements) {
        throw BadInput(header.string() + ": no tensor has that many elements, got " + shown(entry));
    }
    tensor.elements = *elements;
    tensor.row_elements = *elements == 0 ? 0 : *product(begin + (begin != end), end);
}

std::vector<char> read_file(const path& file, std::size_t size) {
    std::vector<char> bytes(size);
    std::ifstream stream(file, std::ios::binary);
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(size))) {
        throw BadInput(file.string() + ": " + std::to_string(size) + " bytes cannot be read");
    }
    return bytes;
}

void read_texts(const path& file, std::size_t size, Tensor& tensor) {
    const auto bad = [&](const std::string& why) {
        return BadInput(file.string() + ": tensor '" + tensor.name + "': " + why);
    };
    std::uint32_t length = 0;
    if (tensor.elements > size / sizeof length) {
        throw bad("the file holds " + std::to_string(size) + " bytes, it takes >= " +
                  std::to_string(tensor.elements) + " x " + std::to_string(sizeof length));
    }
    tensor.data = read_file(file, size);
    tensor.texts.reserve(tensor.elements);
    std::string_view left(tensor.data.data(), tensor.data.size());
    const auto take = [&](std::size_t count) {
        if (left.size() < count) {
            throw bad("the file ends within string " + std::to_string(tensor.texts.size()));
        }
        const auto taken = left.substr(0, count);
        left.remove_prefix(count);
        return taken;
    };
    while (tensor.texts.size() < tensor.elements) {
        std::memcpy(&length, take(sizeof length).data(), sizeof length);
        const auto text = take(length);
        if (!is_utf8(text)) {
            throw bad("string " + std::to_string(tensor.texts.size()) + " is no UTF-8");
        }
        tensor.texts.push_back(text);
    }
    if (!left.empty()) {
        throw bad(std::to_string(left.size()) + " bytes are left after " +
                  std::to_string(tensor.elements) + " strings");
    }
}

void read_data(const path& file, Tensor& tensor) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error) throw BadInput(file.string() + ": cannot be read: " + error.message());
    if (tensor.dtype->is_string()) return read_texts(file, size, tensor);
    std::size_t wanted = 0;
    if (__builtin_mul_overflow(tensor.elements, tensor.dtype->size, &wanted) || wanted != size) {
        throw BadInput(file.string() + ": holds " + std::to_string(size) + " bytes, expected " +
                       std::to_string(tensor.elements) + " elements of " +
                       std::string(tensor.dtype->name) + " for tensor '" + tensor.name + "'");
    }
    tensor.data = read_file(file, size);
    const bool binary = tensor.dtype->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    if (binary && std::any_of(tensor.data.begin(), tensor.data.end(),
                              [](char byte) { return byte != 0 && byte != 1; })) {
        throw BadInput(file.string() + ": tensor '" + tensor.name +
                       "': expected bytes of 0 and 1");
    }
}

Tensor read_tensor(const path& header, const Json& entry) {
    Tensor tensor;
    const auto* name = text_of(entry, "name");
    const auto* dtype = text_of(entry, "dtype");
    const auto* file = text_of(entry, "file");
    if (name && entry_of(entry, "kind")) {
        throw Unsupported(header.string() + ": only tensors can be given, got " + shown(entry));
    }
    if (!name || !dtype || !file) {
        throw BadInput(header.string() +
                       ": expected tensors with the texts name, dtype and file, got " +
                       shown(entry));
    }
    tensor.name = *name;
    tensor.dtype = dtype_of(*dtype);
    if (!tensor.dtype) {
        throw Unsupported(header.string() + ": tensor '" + *name + "' is " + *dtype +
                          ", expected one of " + dtype_names());
    }
    read_shape(header, entry, tensor);
    read_data(header.parent_path() / *file, tensor);
    return tensor;
}

std::size_t read_batch(const path& header, const Json& batch, const std::vector<Tensor>& tensors) {
    const auto rows = [](const Tensor& tensor) {
        return tensor.shape.empty() ? 0 : static_cast<std::uint64_t>(tensor.shape[0]);
    };
    const bool fits =
        batch.is_number_unsigned() && batch.get<std::uint64_t>() >= 1 && !tensors.empty() &&
        std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
            return rows(tensor) == rows(tensors[0]) && rows(tensor) >= batch.get<std::uint64_t>();
        });
    if (fits) return batch.get<std::size_t>();
    throw BadInput(header.string() +
                   ": needs N >= batch >= 1 rows, the same N in every tensor; got batch " +
                   shown(batch));
}

}  // namespace

Inputs::Inputs(const path& folder) {
    const path header = folder / "header.json";
    const Json described = read_json(header);
    const auto* entries = entry_of(described, "tensors");
    if (!entries || !entries->is_array()) {
        throw BadInput(header.string() + ": expected {\"tensors\": [...]}");
    }
    for (const auto& entry : *entries) {
        Tensor tensor = read_tensor(header, entry);
        for (const auto& other : tensors_) {
            if (other.name == tensor.name) {
                throw BadInput(header.string() + ": tensor '" + tensor.name + "' is there twice");
            }
        }
        tensors_.push_back(std::move(tensor));
    }
    if (const auto* batch = entry_of(described, "batch")) {
        batch_ = read_batch(header, *batch, tensors_);
        rows_ = static_cast<std::size_t>(tensors_[0].shape[0]);
    }
}

std::vector<std::string> Inputs::names() const {
    std::vector<std::string> found;
    for (const auto& tensor : tensors_) found.push_back(tensor.name);
    return found;
}

std::vector<Cut> Inputs::all() const {
    if (!has_batch()) return {Cut{}};
    std::vector<Cut> cuts;
    for (std::size_t first = 0; first < rows_; first += batch_) {
        cuts.push_back({first, std::min(batch_, rows_ - first)});
    }
    return cuts;
}

Cut Inputs::full_batch(std::size_t i) const noexcept {
    return has_batch() ? Cut{i % (rows_ / batch_) * batch_, batch_} : Cut{};
}

}  // namespace transect
