#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "failure.hpp"

namespace transect {

namespace {

std::string shown(const std::vector<std::optional<std::int64_t>>& shape) {
    std::string text = "[";
    for (const auto& size : shape) {
        if (text.size() > 1) text += ", ";
        text += size ? std::to_string(*size) : "any";
    }
    return text + "]";
}

bool fits(const Described& wanted, const Tensor& given) {
    if (wanted.dtype != given.dtype || given.shape.empty() ||
        wanted.shape.size() != given.shape.size()) {
        return false;
    }
    return std::equal(wanted.shape.begin() + 1, wanted.shape.end(), given.shape.begin() + 1,
                      [](const auto& a, std::int64_t b) { return !a || *a == b; });
}

// The data are what the step takes, rows along the first axis: returns how many.
std::int64_t check_data(const std::string& header, const Step& step, const Inputs& inputs) {
    for (const auto& tensor : inputs.tensors()) {
        const bool taken = std::any_of(step.data.begin(), step.data.end(),
                                       [&](const auto& data) { return data.name == tensor.name; });
        if (!taken) throw BadInput(header + ": the step takes no tensor '" + tensor.name + "'");
    }
    std::optional<std::int64_t> rows;
    for (const auto& wanted : step.data) {
        const auto* tensor = find_tensor(inputs, wanted.name);
        if (!tensor) throw BadInput(header + ": has no tensor '" + wanted.name + "'");
        if (!fits(wanted, *tensor)) {
            throw BadInput(header + ": '" + wanted.name + "' is " +
                           std::string(tensor->dtype->name) + " of shape " +
                           shown({tensor->shape.begin(), tensor->shape.end()}) +
                           ", the step takes " + std::string(wanted.dtype->name) +
                           " of shape " + shown(wanted.shape));
        }
        if (rows && *rows != tensor->shape[0]) {
            throw BadInput(header + ": '" + wanted.name + "' has " +
                           std::to_string(tensor->shape[0]) + " rows, others have " +
                           std::to_string(*rows) + " rows");
        }
        rows = tensor->shape[0];
    }
    return rows.value_or(0);
}

bool is_finite(const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
}

Json read_schedule(const std::filesystem::path& file, const Step& step, std::size_t until) {
    const Json schedule = read_json(file);
    if (!schedule.is_object()) throw BadInput(file.string() + ": expected a JSON object");
    for (const auto& [name, value] : schedule.items()) {
        const auto says = file.string() + ": '" + name + "' ";
        const bool known = std::any_of(step.hyper.begin(), step.hyper.end(),
                                       [&name = name](auto& hyper) { return hyper.name == name; });
        if (!known) throw BadInput(says + "is no hyper-parameter of the step");
        if (value.is_array() && value.size() < until) {
            throw BadInput(says + "has " + std::to_string(value.size()) + " values, expected " +
                           std::to_string(until));
        }
        const bool good = value.is_array() ? std::all_of(value.begin(), value.end(), is_finite)
                                           : is_finite(value);
        if (!good) throw BadInput(says + "is not made of finite numbers");
    }
    return schedule;
}

std::vector<std::int64_t> read_order(const Arguments& given, std::int64_t rows) {
    const auto& file = given.order;
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error) throw BadInput(file.string() + ": cannot be read: " + error.message());
    std::size_t count = 0, bytes = 0;
    if (__builtin_mul_overflow(*given.until * given.accumulate, given.batch, &count) ||
        __builtin_mul_overflow(count, sizeof(std::int64_t), &bytes) || bytes > size ||
        size % sizeof(std::int64_t) != 0) {
        throw BadInput(file.string() + ": holds " + std::to_string(size) +
                       " bytes, expected int64 and at least " + std::to_string(*given.until) +
                       " steps x " + std::to_string(given.accumulate) + " x " +
                       std::to_string(given.batch) + " of them");
    }
    std::vector<std::int64_t> order(count);
    std::ifstream stream(file, std::ios::binary);
    if (!stream.read(reinterpret_cast<char*>(order.data()), static_cast<std::streamsize>(bytes))) {
        throw BadInput(file.string() + ": cannot be read");
    }
    for (const auto row : order) {
        if (row >= 0 && row < rows) continue;
        throw BadInput(file.string() + ": row " + std::to_string(row) + ", the data have " +
                       std::to_string(rows) + " rows");
    }
    return order;
}

}  // namespace

const Tensor* find_tensor(const Inputs& inputs, const std::string& name) {
    const auto& tensors = inputs.tensors();
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const Tensor& tensor) { return tensor.name == name; });
    return found == tensors.end() ? nullptr : &*found;
}

Plan::Plan(const Arguments& given, const Step& step, const Inputs& inputs)
    : per_step_(given.accumulate * given.batch) {
    if (given.schedule) schedule_ = read_schedule(*given.schedule, step, *given.until);
    const auto rows = check_data((given.inputs / "header.json").string(), step, inputs);
    order_ = read_order(given, rows);
}

double Plan::value(const Hyper& hyper, std::size_t step) const {
    const auto found = schedule_.find(hyper.name);
    if (found == schedule_.end()) return hyper.value;
    return (found->is_array() ? (*found)[step] : *found).get<double>();
}

}  // namespace transect
