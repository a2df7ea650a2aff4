#include "state.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "failure.hpp"
#include "json.hpp"

namespace transect {

namespace {

// The longest header that safetensors itself allows.
constexpr std::uint64_t longest_header = 100'000'000;

std::vector<char> read_file(const std::filesystem::path& path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) throw BadInput(path.string() + ": cannot be read: " + error.message());
    std::vector<char> bytes(size);
    std::ifstream stream(path, std::ios::binary);
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(size))) {
        throw BadInput(path.string() + ": cannot be read");
    }
    return bytes;
}

using Place = std::pair<std::uint64_t, std::uint64_t>;  // begin and end

Place read_place(const Json& entry) {
    const auto* offsets = entry_of(entry, "data_offsets");
    if (offsets && offsets->is_array() && offsets->size() == 2 &&
        (*offsets)[0].is_number_unsigned() && (*offsets)[1].is_number_unsigned()) {
        const Place place{(*offsets)[0].get<std::uint64_t>(), (*offsets)[1].get<std::uint64_t>()};
        if (place.first <= place.second) return place;
    }
    throw BadInput("expected data_offsets of two numbers, got " + shown(entry));
}

// Dtype, shape and size are those of the manifest.
bool is_as_described(const Json& entry, const Place& place, const Described& tensor) {
    const auto* dtype = text_of(entry, "dtype");
    const auto* shape = entry_of(entry, "shape");
    return dtype && *dtype == tensor.dtype->tag && shape && *shape == Json(tensor.sizes()) &&
           place.second - place.first == tensor.bytes;
}

// The tensors lie one behind the other and fill the file.
void check_places(std::vector<Place> places, std::uint64_t size) {
    std::sort(places.begin(), places.end());
    std::uint64_t end = 0;
    for (const auto& place : places) {
        if (place.first != end) {
            throw BadInput("expected a tensor at byte " + std::to_string(end) + ", got " +
                           std::to_string(place.first));
        }
        end = place.second;
    }
    if (end != size) {
        throw BadInput("the tensors end at byte " + std::to_string(end) + " of " +
                       std::to_string(size));
    }
}

void check_step(const Json& header, const Step& step) {
    const auto* metadata = entry_of(header, "__metadata__");
    const auto* graph = metadata ? text_of(*metadata, "step_graph") : nullptr;
    if (graph && *graph == step.graph_hash) return;
    throw BadInput("is of the step " + (graph ? *graph : "nobody says") + ", expected " +
                   step.graph_hash);
}

// Where each tensor begins, in what lies behind the header.
std::vector<std::uint64_t> read_header(const Json& header, const Step& step, std::uint64_t size) {
    if (!header.is_object()) throw BadInput("expected a JSON object as header");
    check_step(header, step);
    std::vector<Place> places;
    std::vector<std::uint64_t> begins;
    for (const auto& tensor : step.state) {
        const auto* entry = entry_of(header, tensor.name.c_str());
        if (!entry) throw BadInput("has no tensor '" + tensor.name + "'");
        places.push_back(read_place(*entry));
        begins.push_back(places.back().first);
        if (is_as_described(*entry, places.back(), tensor)) continue;
        throw BadInput("'" + tensor.name + "' is " + shown(*entry) +
                       ", expected the manifest's dtype, shape and size");
    }
    for (const auto& [name, entry] : header.items()) {
        const bool known = name == "__metadata__" ||
                           std::any_of(step.state.begin(), step.state.end(),
                                       [&name = name](auto& one) { return one.name == name; });
        if (!known) throw BadInput("the step has no tensor '" + name + "'");
    }
    check_places(std::move(places), size);
    return begins;
}

State parse(std::vector<char> file, const Step& step) {
    std::uint64_t length = 0;
    if (file.size() >= sizeof length) std::memcpy(&length, file.data(), sizeof length);
    if (file.size() < sizeof length || length > file.size() - sizeof length ||
        length > longest_header) {
        throw BadInput(std::to_string(file.size()) + " bytes do not hold a header of " +
                       std::to_string(length));
    }
    State state{std::move(file), {}};
    const char* text = state.file.data() + sizeof length;
    const char* bytes = text + length;
    const auto size = state.file.size() - sizeof length - length;
    for (const auto begin : read_header(Json::parse(text, bytes), step, size)) {
        state.tensors.push_back(bytes + begin);
    }
    if (const auto name = not_finite(step, state.tensors)) {
        throw BadInput("'" + *name + "' holds a number that is not finite");
    }
    return state;
}

// The bits of an exponent that is all ones: an infinity or a NaN. 0: the type has none.
std::uint64_t exponent_of(const Dtype& dtype) {
    switch (dtype.type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        return 0x7C00;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return 0x7F80;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        return 0x7F800000;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return 0x7FF0000000000000;
    default:
        return 0;
    }
}

}  // namespace

State read_state(const std::filesystem::path& path, const Step& step) {
    auto file = read_file(path);
    try {
        return parse(std::move(file), step);
    } catch (const Json::exception& error) {
        throw BadInput(path.string() + ": expected a header in JSON: " + error.what());
    } catch (const BadInput& error) {
        throw BadInput(path.string() + ": " + error.what());
    }
}

std::optional<std::string> not_finite(const Step& step, const StateBytes& state) {
    for (std::size_t i = 0; i < step.state.size(); ++i) {
        const auto& tensor = step.state[i];
        const auto exponent = exponent_of(*tensor.dtype);
        std::uint64_t bits = 0;
        for (std::size_t at = 0; exponent != 0 && at < tensor.bytes; at += tensor.dtype->size) {
            std::memcpy(&bits, state[i] + at, tensor.dtype->size);
            if ((bits & exponent) == exponent) return tensor.name;
        }
    }
    return std::nullopt;
}

}  // namespace transect
