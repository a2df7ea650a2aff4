// One run of a training step: gather, bind, run; the state stays where it is.

#include <cstring>

#include "trainer.hpp"

namespace transect {

void Trainer::gather(const std::int64_t* rows) {
    for (auto& lent : data_) {
        const auto size = lent.from->row_elements * lent.from->dtype->size;
        for (std::size_t i = 0; size > 0 && i < batch_; ++i) {
            std::memcpy(lent.bytes.data() + i * size,
                        lent.from->data.data() + static_cast<std::size_t>(rows[i]) * size, size);
        }
    }
}

void Trainer::set(const Plan& plan, std::size_t step) {
    for (std::size_t i = 0; i < hyper_.size(); ++i) {
        const double value = plan.value(step_.hyper[i], step);
        std::memcpy(hyper_[i].bytes.data(), &value, sizeof value);
    }
}

double Trainer::metric(std::size_t index) const {
    const char* bytes = metrics_[index].bytes.data();
    if (step_.metrics[index].dtype->size == sizeof(double)) {
        double value;
        std::memcpy(&value, bytes, sizeof value);
        return value;
    }
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// With the state's buffers as they lie now, and the metrics.
Ort::IoBinding& Trainer::binding(GraphKind kind) {
    const std::array<std::size_t, 3> key{kind, turns_[step_graph], turns_[accumulate_graph]};
    if (const auto found = bindings_.find(key); found != bindings_.end()) return found->second;
    const auto& graph = step_.graphs[kind];
    Ort::IoBinding made(sessions_[kind]->handle());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const auto& tensor = step_.state[i];
        const auto& [values, place] = buffers_[i];
        if (graph.takes(tensor.name)) made.BindInput(tensor.name.c_str(), values[place]);
        if (graph.gives(tensor.next)) made.BindOutput(tensor.next->c_str(), values[1 - place]);
    }
    for (const auto& metric : metrics_) made.BindOutput(metric.name.c_str(), metric.value);
    return bindings_.emplace(key, std::move(made)).first->second;
}

// What comes from the host: bound each time, which copies it where the device is another.
void Trainer::bind(Ort::IoBinding& binding, const Graph& graph) {
    for (const auto* list : {&data_, &hyper_, &seed_}) {
        for (const auto& lent : *list) {
            if (graph.takes(lent.name)) binding.BindInput(lent.name.c_str(), lent.value);
        }
    }
    binding.SynchronizeInputs();
}

void Trainer::change_places(GraphKind kind) {
    turns_[kind] ^= 1U;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        if (step_.graphs[kind].gives(step_.state[i].next)) buffers_[i].place ^= 1U;
    }
}

Trainer::Times Trainer::run(GraphKind kind) {
    const auto begin = Clock::now();
    auto& bound_to = binding(kind);
    bind(bound_to, step_.graphs[kind]);
    const auto bound = Clock::now();
    sessions_[kind]->handle().Run(Ort::RunOptions{nullptr}, bound_to);
    bound_to.SynchronizeOutputs();
    const auto ran = Clock::now();
    change_places(kind);
    return {bound - begin, ran - bound};
}

}  // namespace transect
