// The plan, docs/runner-contract.md, as the runner in C reads it, and its tensors.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

// The library is loaded at run time.
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>

#include "../c/plan.h"

class Plan {
public:
    // Raises Failure, bad-input, where the file is refused.
    explicit Plan(const char* file);

    // The header's numbers.
    const plan* operator->() const noexcept { return plan_; }

    std::vector<const entry*> all(role role, int group = ANY_GROUP) const;
    // The first of them; null: there is none.
    const entry* first(role role, int group = ANY_GROUP) const {
        return plan_next(plan_, nullptr, role, group);
    }
    const char* text(role role, int group = ANY_GROUP) const { return first(role, group)->text; }
    // What an entry links to.
    const entry* linked(const entry* from) const { return plan_entry(plan_, from->link); }

private:
    const plan* plan_;
};

// The data of an entry, in memory until `entry_drop`. Raises Failure.
const char* data_of(const entry* from);

// A tensor with all rows.
struct Tensor {
    explicit Tensor(const entry* from);
    bool is_text() const noexcept { return element_size == 0; }

    const char* name;
    ONNXTensorElementDataType type;
    std::vector<std::int64_t> shape;
    std::size_t element_size, elements;
    std::size_t row_elements;  // of one entry of the first axis; of all for a scalar
    const char* data;
    std::vector<std::string_view> texts;  // each within data
};

// A run's share of the rows: `rows` from `first` on. Without a batch both are 0: the whole tensors.
struct Cut {
    std::size_t first = 0, rows = 0;
};

struct Inputs {
    Inputs(const Plan& plan, int group);

    // The i-th full batch, in a circle.
    Cut full_batch(std::size_t i) const noexcept;

    std::vector<Tensor> tensors;
    std::size_t batch, rows;
};
