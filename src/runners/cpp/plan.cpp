#include "plan.hpp"

#include <cerrno>
#include <cstring>

#include "result.hpp"

namespace {

std::vector<std::string_view> cut_texts(const char* data, std::size_t count) {
    std::vector<std::string_view> texts;
    texts.reserve(count);
    for (std::uint32_t length; texts.size() < count; data += sizeof length + length) {
        std::memcpy(&length, data, sizeof length);
        texts.emplace_back(data + sizeof length, length);
    }
    return texts;
}

}  // namespace

Plan::Plan(const char* file) {
    char why[4096];
    plan_ = plan_open(file, why, sizeof why);
    if (!plan_) throw Failure(Cause::bad_input, why);
}

std::vector<const entry*> Plan::all(role role, int group) const {
    std::vector<const entry*> found;
    const entry* one = nullptr;
    while ((one = plan_next(plan_, one, role, group))) found.push_back(one);
    return found;
}

const char* data_of(const entry* from) {
    char why[4096];
    const auto* data = entry_data(from, why, sizeof why);
    if (!data) throw Failure(errno == ENOMEM ? Cause::out_of_memory : Cause::crash, why);
    return reinterpret_cast<const char*>(data);
}

Tensor::Tensor(const entry* from)
    : name(from->name),
      type(static_cast<ONNXTensorElementDataType>(from->dtype)),
      shape(from->shape, from->shape + from->axes),
      element_size(dtype_size(from->dtype)),
      elements(entry_elements(from)),
      row_elements(elements == 0 || shape.empty() ? elements
                                                  : elements / static_cast<std::size_t>(shape[0])),
      data(data_of(from)) {
    if (is_text()) texts = cut_texts(data, elements);
}

Inputs::Inputs(const Plan& plan, int group) : batch(plan->batch), rows(plan->rows) {
    for (const auto* one : plan.all(ROLE_INPUT, group)) tensors.emplace_back(one);
}

Cut Inputs::full_batch(std::size_t i) const noexcept {
    return batch == 0 ? Cut{} : Cut{i % (rows / batch) * batch, batch};
}
