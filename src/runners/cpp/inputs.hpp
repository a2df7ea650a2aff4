// The input tensors: `header.json` and the files that it names, in host memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dtypes.hpp"

namespace transect {

struct Tensor {
    std::string name;
    const Dtype* dtype = nullptr;
    std::vector<std::int64_t> shape;
    std::size_t elements = 0;
    std::size_t row_elements = 0;     // of one entry of the first axis; of all for a scalar
    std::vector<char> data;           // the file
    std::vector<std::string_view> texts;  // strings: each within data
};

// A run's share of the rows: `rows` from `first` on. Without a batch both are 0: the whole tensors.
struct Cut {
    std::size_t first = 0, rows = 0;
};

class Inputs {
public:
    // Reads `folder/header.json` and its files; a file's size is checked before room is made.
    // Raises BadInput, and Unsupported for a value that is no tensor or of an unknown type.
    explicit Inputs(const std::filesystem::path& folder);

    const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
    std::vector<std::string> names() const;
    bool has_batch() const noexcept { return batch_ > 0; }
    std::size_t rows() const noexcept { return rows_; }

    // All rows in batches, the last one perhaps partial; one run of all without a batch.
    std::vector<Cut> all() const;
    // The i-th full batch, in a circle.
    Cut full_batch(std::size_t i) const noexcept;
    // From now on the tensors are given whole.
    void forget_batch() noexcept { batch_ = rows_ = 0; }

private:
    std::vector<Tensor> tensors_;
    std::size_t batch_ = 0, rows_ = 0;
};

}  // namespace transect
