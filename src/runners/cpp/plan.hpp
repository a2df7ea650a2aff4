// What a training is given beside its step: data, hyper-parameters, the order of the rows.

#pragma once

#include "arguments.hpp"
#include "inputs.hpp"
#include "json.hpp"
#include "step.hpp"

namespace transect {

class Plan {
public:
    // Raises BadInput where the data are not the step's, or the schedule or the order do not fit.
    Plan(const Arguments& given, const Step& step, const Inputs& inputs);

    // The value of a hyper-parameter in a step.
    double value(const Hyper& hyper, std::size_t step) const;

    // The rows of the micro-batches of a step, one behind the other.
    const std::int64_t* rows(std::size_t step) const { return order_.data() + step * per_step_; }

private:
    Json schedule_ = Json::object();
    std::vector<std::int64_t> order_;
    std::size_t per_step_;
};

// Null when there is none of that name.
const Tensor* find_tensor(const Inputs& inputs, const std::string& name);

}  // namespace transect
