#include "trainer.hpp"

#include <algorithm>
#include <cstring>

#include "cuda.hpp"
#include "failure.hpp"

namespace transect {

namespace {

// The names of the file are those of the manifest.
void check_names(const Session& session, const Graph& graph) {
    try {
        session.require_inputs(graph.inputs);
    } catch (const BadInput& error) {
        throw BadInput(graph.file.string() + ": " + error.what());
    }
    for (const auto& name : graph.outputs) {
        const auto& outputs = session.outputs();
        if (std::any_of(outputs.begin(), outputs.end(),
                        [&](const Output& output) { return output.name == name; })) {
            continue;
        }
        throw BadInput(graph.file.string() + ": has no output '" + name + "'");
    }
}

}  // namespace

Trainer::Trainer(Runtime& runtime, const Arguments& given, const Options& options, const Step& step,
                 const Inputs& inputs, const StateBytes& state)
    : step_(step),
      batch_(given.batch),
      host_(Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault)),
      copies_(step.state.size()),
      state_(step.state.size()) {
    for (std::size_t kind = 0; kind < (step.accumulates ? 2U : 1U); ++kind) {
        const auto& graph = step.graphs[kind];
        sessions_[kind].emplace(runtime.environment(), graph.file, given.provider, options);
        check_names(*sessions_[kind], graph);
    }
    auto& session = *sessions_[step_graph];
    allocator_.emplace(session.handle(), session.output_memory());
    lend_all(given, inputs);
    for (std::size_t i = 0; i < state.size(); ++i) {
        buffers_.push_back(make_buffer(step.state[i], state[i]));
    }
}

Trainer::Lent Trainer::lend(const std::string& name, const Dtype& dtype,
                            const std::vector<std::int64_t>& shape, std::size_t bytes) const {
    Lent lent{name, std::vector<char>(bytes)};
    lent.value = Ort::Value::CreateTensor(host_, static_cast<void*>(lent.bytes.data()), bytes,
                                          shape.data(), shape.size(), dtype.type);
    return lent;
}

void Trainer::lend_all(const Arguments& given, const Inputs& inputs) {
    for (const auto& described : step_.data) {
        const auto* from = find_tensor(inputs, described.name);
        auto shape = from->shape;
        shape[0] = static_cast<std::int64_t>(batch_);
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(batch_, from->row_elements * from->dtype->size, &bytes)) {
            throw Failure(Cause::out_of_memory, "no memory for the rows of a batch");
        }
        data_.push_back(lend(described.name, *from->dtype, shape, bytes));
        data_.back().from = from;
    }
    for (const auto& hyper : step_.hyper) {
        hyper_.push_back(lend(hyper.name, *dtype_of("float64"), {}, sizeof(double)));
    }
    for (const auto& metric : step_.metrics) {
        metrics_.push_back(lend(metric.name, *metric.dtype, {}, metric.dtype->size));
    }
    if (!step_.seed) return;
    const auto seed = static_cast<std::int64_t>(given.seed);
    seed_.push_back(lend(*step_.seed, *dtype_of("int64"), {}, sizeof seed));
    std::memcpy(seed_[0].bytes.data(), &seed, sizeof seed);
}

bool Trainer::on_host() const {
    return sessions_[step_graph]->output_memory().GetDeviceType() == OrtMemoryInfoDeviceType_CPU;
}

// Makes the buffers of a tensor on the device, the first one with what it begins with.
Trainer::Buffer Trainer::make_buffer(const Described& tensor, const char* begun) {
    const auto shape = tensor.sizes();
    Buffer buffer;
    for (std::size_t side = 0; side < (tensor.next ? 2U : 1U); ++side) {
        buffer.values[side] = Ort::Value::CreateTensor(*allocator_, shape.data(), shape.size(),
                                                       tensor.dtype->type);
    }
    if (tensor.bytes == 0) return buffer;
    void* bytes = buffer.values[0].GetTensorMutableRawData();
    if (on_host()) {
        std::memcpy(bytes, begun, tensor.bytes);
    } else {
        cuda::copy_to_device(bytes, begun, tensor.bytes);
    }
    return buffer;
}

Nanoseconds Trainer::created() const noexcept {
    Nanoseconds sum{};
    for (const auto& session : sessions_) sum += session ? session->created() : Nanoseconds{};
    return sum;
}

const StateBytes& Trainer::state() {
    for (std::size_t i = 0; i < state_.size(); ++i) {
        const void* bytes = buffers_[i].values[buffers_[i].place].GetTensorRawData();
        state_[i] = static_cast<const char*>(bytes);
        if (on_host()) continue;
        copies_[i].resize(step_.state[i].bytes);
        cuda::copy_to_host(copies_[i].data(), bytes, copies_[i].size());
        state_[i] = copies_[i].data();
    }
    return state_;
}

}  // namespace transect
