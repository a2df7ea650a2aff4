#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "cuda.hpp"
#include "measure.hpp"

namespace {

// The numbers of the graphs.
constexpr std::size_t step_graph = 0, accumulate_graph = 1;

// A tensor of the state on the provider's device. Where a step changes it there are two buffers
// that change places: what is read is in `place`, what is written in the other one.
struct Buffer {
    std::array<Ort::Value, 2> values{Ort::Value{nullptr}, Ort::Value{nullptr}};
    std::size_t place = 0;
};

// A value over memory of the program's own.
struct Lent {
    std::vector<char> bytes;
    Ort::Value value{nullptr};
    std::size_t row_bytes = 0;
    const char* source = nullptr;  // data: all rows; a hyper-parameter: its values for all steps

    void take(std::size_t place, std::int64_t row) {
        if (row_bytes == 0) return;
        const auto* from = source + static_cast<std::size_t>(row) * row_bytes;
        std::memcpy(bytes.data() + place * row_bytes, from, row_bytes);
    }

    double number() const { return row_bytes == sizeof(double) ? as<double>() : as<float>(); }

    template <typename Number>
    Number as() const {
        Number number;
        std::memcpy(&number, bytes.data(), sizeof number);
        return number;
    }
};

struct Graph {
    Session session;
    // What its inputs and outputs are bound to, by name.
    std::vector<std::pair<const char*, Lent*>> fed, metrics;
    std::vector<std::pair<const char*, Buffer*>> read, written;
};

// A row of the times.
struct StepTimes {
    std::int64_t gather = 0, bind = 0, run = 0, read = 0;
};

// The sessions of a training step, and its state on the device.
class Trainer {
public:
    // Makes the sessions and takes the state to the device.
    Trainer(Ort::Env& environment, const Plan& plan)
        : plan_(plan),
          order_(reinterpret_cast<const std::int64_t*>(data_of(plan.first(ROLE_ORDER)))) {
        for (const auto* graph : plan.all(ROLE_GRAPH)) {
            graphs_.push_back({Session(environment, plan, graph), {}, {}, {}, {}});
            session_ns += graphs_.back().session.created_ns;
        }
        auto& session = graphs_[step_graph].session;
        allocator_.emplace(session.handle, session.output_memory);
        device_ = session.output_memory.GetDeviceType();
        for (const auto* data : plan.all(ROLE_DATA)) data_.push_back(&lend(data));
        for (const auto* hyper : plan.all(ROLE_HYPER)) hyper_.push_back(&lend(hyper));
        for (const auto* metric : plan.all(ROLE_METRIC)) metrics_.push_back(&lend(metric));
        for (const auto* seed : plan.all(ROLE_SEED)) {
            std::memcpy(lend(seed).bytes.data(), &plan->seed, sizeof plan->seed);
        }
        for (const auto* tensor : plan.all(ROLE_STATE)) {
            auto& value = state_[tensor].values[0] = allocate(tensor);
            const auto* begun = data_of(tensor);
            copy_to_device(device_, value.GetTensorMutableRawData(), begun, tensor->size);
            entry_drop(tensor, reinterpret_cast<const unsigned char*>(begun));
        }
        for (const auto role : {ROLE_TAKES, ROLE_GIVES}) {
            for (const auto* end : plan.all(role)) link(end);
        }
    }

    // Does the step of that number; appends the means of its metrics.
    StepTimes step(std::size_t number, std::vector<double>& metrics) {
        StepTimes times;
        std::vector<double> sums(metrics_.size());
        for (auto* hyper : hyper_) hyper->take(0, static_cast<std::int64_t>(number));
        const auto parts = plan_->accumulate;
        for (std::size_t part = 0; part < parts; ++part) {
            const auto begin = Clock::now();
            const auto* rows = order_ + (number * parts + part) * plan_->batch;
            for (auto* lent : data_) {
                for (std::size_t i = 0; i < plan_->batch; ++i) lent->take(i, rows[i]);
            }
            times.gather += between(begin, Clock::now());
            run(part + 1 == parts ? step_graph : accumulate_graph, times);
            const auto ran = Clock::now();
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += metrics_[i]->number();
            times.read += between(ran, Clock::now());
        }
        for (const auto sum : sums) metrics.push_back(sum / static_cast<double>(parts));
        return times;
    }

    // Writes the block of the state, to the disk; returns whether all its numbers are finite.
    bool write_state(const std::string& path) {
        std::deque<std::string> made;  // what lies between tensors, and what comes from a device
        std::vector<std::string_view> parts;
        std::size_t end = 0;
        bool finite = true;
        for (const auto& [tensor, buffer] : state_) {
            const auto* bytes = buffer.values[buffer.place].GetTensorRawData();
            parts.push_back(made.emplace_back(tensor->data_at - end, '\0'));
            if (device_ == OrtMemoryInfoDeviceType_CPU) {
                parts.emplace_back(static_cast<const char*>(bytes), tensor->size);
            } else {
                auto& copied = made.emplace_back(tensor->size, '\0');
                copy_to_host(device_, copied.data(), bytes, tensor->size);
                parts.push_back(copied);
            }
            finite = finite && entry_is_finite(tensor, parts.back().data()) != 0;
            end = tensor->data_at + tensor->size;
        }
        write_file(path, O_TRUNC, parts, true);
        return finite;
    }

    std::int64_t session_ns = 0;  // how long making the sessions took

private:
    // A batch of data, a scalar of all else.
    Lent& lend(const entry* from) {
        const std::size_t axes = from->role == ROLE_DATA ? from->axes : 0;
        std::vector<std::int64_t> shape(from->shape, from->shape + axes);
        if (axes > 0) shape[0] = static_cast<std::int64_t>(plan_->batch);
        auto& lent = lent_[from];
        lent.row_bytes = dtype_size(from->dtype);
        for (std::size_t axis = 1; axis < axes; ++axis) lent.row_bytes *= shape[axis];
        lent.bytes.resize(axes > 0 ? plan_->batch * lent.row_bytes : lent.row_bytes);
        lent.value = Ort::Value::CreateTensor(
            host_, static_cast<void*>(lent.bytes.data()), lent.bytes.size(), shape.data(), axes,
            static_cast<ONNXTensorElementDataType>(from->dtype));
        if (from->size > 0) lent.source = data_of(from);
        return lent;
    }

    Ort::Value allocate(const entry* tensor) {
        return Ort::Value::CreateTensor(*allocator_, tensor->shape, tensor->axes,
                                        static_cast<ONNXTensorElementDataType>(tensor->dtype));
    }

    void link(const entry* end) {
        auto& graph = graphs_[end->group];
        const auto* what = plan_.linked(end);
        const bool given = end->role == ROLE_GIVES;
        if (what->role != ROLE_STATE) {
            (given ? graph.metrics : graph.fed).emplace_back(end->name, &lent_.at(what));
            return;
        }
        auto& buffer = state_.at(what);
        if (given && !buffer.values[1]) buffer.values[1] = allocate(what);
        (given ? graph.written : graph.read).emplace_back(end->name, &buffer);
    }

    // With the state's buffers as they lie now, and the metrics.
    Ort::IoBinding& binding(std::size_t kind) {
        const std::array<std::size_t, 3> key{kind, turns_[step_graph], turns_[accumulate_graph]};
        if (const auto found = bindings_.find(key); found != bindings_.end()) return found->second;
        auto& graph = graphs_[kind];
        Ort::IoBinding made(graph.session.handle);
        for (auto& [name, to] : graph.read) made.BindInput(name, to->values[to->place]);
        for (auto& [name, to] : graph.written) made.BindOutput(name, to->values[1 - to->place]);
        for (auto& [name, to] : graph.metrics) made.BindOutput(name, to->value);
        return bindings_.emplace(key, std::move(made)).first->second;
    }

    // Afterwards the metrics are there, and the state is the next one.
    void run(std::size_t kind, StepTimes& times) {
        auto& graph = graphs_[kind];
        const auto begin = Clock::now();
        auto& bound_to = binding(kind);
        // What comes from the host: bound each time, which copies it where the device is another.
        for (const auto& [name, lent] : graph.fed) bound_to.BindInput(name, lent->value);
        bound_to.SynchronizeInputs();
        const auto bound = Clock::now();
        graph.session.handle.Run(Ort::RunOptions{nullptr}, bound_to);
        bound_to.SynchronizeOutputs();
        const auto ran = Clock::now();
        times.bind += between(begin, bound);
        times.run += between(bound, ran);
        turns_[kind] ^= 1U;
        for (const auto& [name, buffer] : graph.written) buffer->place ^= 1U;
    }

    const Plan& plan_;
    const std::int64_t* order_;
    const Ort::MemoryInfo host_ =
        Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    std::deque<Graph> graphs_;
    OrtMemoryInfoDeviceType device_;
    std::optional<Ort::Allocator> allocator_;  // of the device
    // By their entries, which lie in the plan's order.
    std::map<const entry*, Buffer> state_;
    std::map<const entry*, Lent> lent_;
    std::vector<Lent*> data_, hyper_, metrics_;
    // A binding for each way in which the buffers may lie: by how often, modulo 2, each of the
    // graphs has run. Made when it first comes.
    std::map<std::array<std::size_t, 3>, Ort::IoBinding> bindings_;
    std::array<std::size_t, 2> turns_{};
};

}  // namespace

Fields run_train(Ort::Env& environment, const Plan& plan, const Result& result) {
    Trainer trainer(environment, plan);
    std::vector<double> metrics;
    std::vector<StepTimes> times;
    std::int64_t slot = 0;
    const auto checkpoint = [&](std::size_t done) {
        const auto begin = Clock::now();
        const bool finite =
            trainer.write_state(result.path("state-" + std::to_string(slot) + ".bin"));
        const auto taken = between(begin, Clock::now());
        result.say({{"checkpoint", json(done)}, {"slot", json(slot)}, {"ns", json(taken)}});
        slot ^= 1;
        return finite;
    };
    for (std::size_t i = 0; i < plan->steps; ++i) {
        const auto row = metrics.size();
        times.push_back(trainer.step(i, metrics));
        // A checkpoint now would take the place of a good one.
        if (!std::isfinite(metrics[row])) break;
        const auto done = plan->first_step + i + 1, every = plan->checkpoint_every;
        const bool due = i + 1 == plan->steps || (every > 0 && done % every == 0);
        if (due && !checkpoint(done)) break;
    }
    if (plan->steps == 0) checkpoint(plan->first_step);
    result.write_process();
    result.write("times.bin", times);
    result.write("metrics.bin", metrics);
    return {{"session_ns", json(trainer.session_ns)}};
}
