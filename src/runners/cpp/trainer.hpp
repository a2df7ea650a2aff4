// The sessions of a training step, and its state on the provider's device.

#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "plan.hpp"
#include "runtime.hpp"
#include "session.hpp"
#include "state.hpp"

namespace transect {

class Trainer {
public:
    // Makes the sessions and takes the state to the device. `inputs` must live as long.
    Trainer(Runtime& runtime, const Arguments& given, const Options& options, const Step& step,
            const Inputs& inputs, const StateBytes& state);

    // How long creating the sessions took.
    Nanoseconds created() const noexcept;

    // Copies rows into the batch.
    void gather(const std::int64_t* rows);

    // Puts the hyper-parameters of a step where they are read.
    void set(const Plan& plan, std::size_t step);

    struct Times {
        Nanoseconds bind, run;
    };

    // Binds and runs a graph; its metrics are then there, and the state is the next one.
    Times run(GraphKind kind);

    double metric(std::size_t index) const;

    // The state in host memory, until the next run.
    const StateBytes& state();

private:
    // A tensor of the state. Where a step changes it there are two buffers that change places:
    // what is read is in `place`, what is written in the other one.
    struct Buffer {
        std::array<Ort::Value, 2> values{Ort::Value{nullptr}, Ort::Value{nullptr}};
        std::size_t place = 0;
    };

    // A value over memory of the program's own.
    struct Lent {
        std::string name;
        std::vector<char> bytes;
        Ort::Value value{nullptr};
        const Tensor* from = nullptr;  // data: all rows
    };

    Lent lend(const std::string& name, const Dtype& dtype, const std::vector<std::int64_t>& shape,
              std::size_t bytes) const;
    void lend_all(const Arguments& given, const Inputs& inputs);
    Buffer make_buffer(const Described& tensor, const char* begun);
    Ort::IoBinding& binding(GraphKind kind);
    void bind(Ort::IoBinding& binding, const Graph& graph);
    void change_places(GraphKind kind);
    bool on_host() const;

    const Step& step_;
    std::size_t batch_;
    Ort::MemoryInfo host_;
    std::array<std::optional<Session>, graph_kinds> sessions_;
    std::optional<Ort::Allocator> allocator_;  // of the device
    std::vector<Buffer> buffers_;
    std::vector<Lent> data_, hyper_, metrics_, seed_;
    // A binding for each way in which the buffers may lie: by how often, modulo 2, each of the
    // graphs has run. Made when it first comes.
    std::map<std::array<std::size_t, 3>, Ort::IoBinding> bindings_;
    std::array<std::size_t, graph_kinds> turns_{};
    std::vector<std::vector<char>> copies_;  // of a state on a device that is no host
    StateBytes state_;
};

}  // namespace transect
