// Mode `train`: a portable training step, from a state to a state.

#include <cmath>
#include <cstring>

#include "failure.hpp"
#include "modes.hpp"
#include "plan.hpp"
#include "trainer.hpp"

namespace transect {

namespace {

using Series = std::vector<double>;
using Times = std::vector<Nanoseconds::rep>;

// JSON has no number that is none: it becomes null.
Record reals(const Series& values) {
    auto list = Record::array();
    for (const double value : values) {
        list.push_back(std::isfinite(value) ? Record(value) : Record(nullptr));
    }
    return list;
}

// The steps from the state's own to `--until`, and what the record has of them.
class Training {
public:
    Training(const Arguments& given, const Step& step, const Plan& plan, Trainer& trainer,
             std::size_t first)
        : given_(given), step_(step), plan_(plan), trainer_(trainer), first_(first),
          metrics_(step.metrics.size()) {}

    // Raises Diverged at the first number that is not finite.
    void run() {
        bool written = false;
        for (auto index = first_; index < *given_.until; ++index) {
            run_step(index);
            const auto every = given_.checkpoint_every;
            written = every > 0 && (index + 1) % every == 0;
            if (written) write_checkpoint(index + 1);
        }
        if (!written) write_checkpoint(*given_.until);
    }

    Record fields() const {
        Record record{
            {"peak_memory_bytes", peak_memory()},
            {"session_ns", trainer_.created().count()},
            {"step_graph", step_.graph_hash},
            {"state", given_.checkpoint.string()},
            {"first_step", first_},
            {"losses", reals(metrics_[0])},
            {"metrics", Record::object()},
            {"gather_ns", gather_},
            {"bind_ns", bind_},
            {"run_ns", run_},
            {"read_ns", read_},
            {"checkpoints", checkpoints_},
        };
        for (std::size_t i = 1; i < metrics_.size(); ++i) {
            record["metrics"][step_.metrics[i].name] = reals(metrics_[i]);
        }
        return record;
    }

private:
    void run_step(std::size_t index) {
        std::vector<double> sums(metrics_.size());
        Nanoseconds gather{}, bind{}, run{}, read{};
        trainer_.set(plan_, index);
        for (std::size_t part = 1; part <= given_.accumulate; ++part) {
            const auto begin = Clock::now();
            trainer_.gather(plan_.rows(index) + (part - 1) * given_.batch);
            gather += Clock::now() - begin;
            const auto times =
                trainer_.run(part == given_.accumulate ? step_graph : accumulate_graph);
            const auto ran = Clock::now();
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += trainer_.metric(i);
            read += Clock::now() - ran;
            bind += times.bind;
            run += times.run;
        }
        const double loss = sums[0] / static_cast<double>(given_.accumulate);
        if (!std::isfinite(loss)) {
            throw Diverged("diverged: the loss of step " + std::to_string(index) + " is " +
                               std::to_string(loss) +
                               ": the rate is too high, or the target has a class that the model "
                               "does not",
                           fields());
        }
        for (std::size_t i = 0; i < sums.size(); ++i) {
            metrics_[i].push_back(sums[i] / static_cast<double>(given_.accumulate));
        }
        gather_.push_back(gather.count());
        bind_.push_back(bind.count());
        run_.push_back(run.count());
        read_.push_back(read.count());
    }

    // Writes the state after `done` updates.
    void write_checkpoint(std::size_t done) {
        const auto begin = Clock::now();
        const auto& state = trainer_.state();
        if (const auto name = not_finite(step_, state)) {
            // That step is not one of those that went well.
            for (auto& series : metrics_) series.pop_back();
            for (auto* times : {&gather_, &bind_, &run_, &read_}) times->pop_back();
            throw Diverged("diverged: after step " + std::to_string(done - 1) + " '" + *name +
                               "' holds a number that is not finite",
                           fields());
        }
        write_state(given_.checkpoint, step_, state);
        const Nanoseconds taken = Clock::now() - begin;
        checkpoints_.push_back({{"step", done}, {"ns", taken.count()}});
    }

    const Arguments& given_;
    const Step& step_;
    const Plan& plan_;
    Trainer& trainer_;
    std::size_t first_;
    std::vector<Series> metrics_;
    Times gather_, bind_, run_, read_;
    Record checkpoints_ = Record::array();
};

std::size_t updates_done(const std::filesystem::path& path, const State& state, const Step& step,
                         std::size_t until) {
    std::int64_t done;
    std::memcpy(&done, state.tensors[step.counter], sizeof done);
    if (done >= 0 && static_cast<std::size_t>(done) <= until) return static_cast<std::size_t>(done);
    throw BadInput(path.string() + ": is of step " + std::to_string(done) +
                   ", expected one from 0 to --until " + std::to_string(until));
}

}  // namespace

Record run_train(Runtime& runtime, const Arguments& given, const Options& options,
                 const Inputs& inputs) {
    const auto step = read_step(given.step, given.accumulate > 1);
    const Plan plan(given, step, inputs);
    const bool begun = std::filesystem::exists(std::filesystem::symlink_status(given.checkpoint));
    const auto source = begun ? given.checkpoint : given.state.value_or(step.state_file);
    auto state = read_state(source, step);
    const auto first = updates_done(source, state, step, *given.until);
    remove_left(given.checkpoint);
    Trainer trainer(runtime, given, options, step, inputs, state.tensors);
    // It is on the device now.
    state = State();
    Training training(given, step, plan, trainer, first);
    training.run();
    return training.fields();
}

}  // namespace transect
