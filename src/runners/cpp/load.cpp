#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include "failure.hpp"
#include "measure.hpp"
#include "modes.hpp"
#include "outputs.hpp"

namespace transect {

namespace {

// A sleep may end late by about this much; the rest of the time is yielded away.
constexpr Nanoseconds sleep_margin = std::chrono::microseconds(200);

// In nanoseconds, 36 years: sums of times stay within 64 bits.
constexpr std::int64_t last_arrival = std::int64_t{1} << 60;

std::vector<std::int64_t> read_arrivals(const std::filesystem::path& path) {
    const auto bad = [&](const std::string& why) { return BadInput(path.string() + ": " + why); };
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) throw bad("cannot be read: " + error.message());
    if (size == 0 || size % sizeof(std::int64_t) != 0) {
        throw bad("expected int64 arrival times, got " + std::to_string(size) + " bytes");
    }
    std::vector<std::int64_t> arrivals(size / sizeof(std::int64_t));
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(arrivals.data()), static_cast<std::streamsize>(size));
    if (!file) throw bad("cannot be read");
    std::int64_t before = 0;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
        if (arrivals[i] < before || arrivals[i] > last_arrival) {
            throw bad("expected times from 0 to 2^60 ns that do not fall, entry " +
                      std::to_string(i) + " is " + std::to_string(arrivals[i]) + " after " +
                      std::to_string(before));
        }
        before = arrivals[i];
    }
    return arrivals;
}

void wait_until(Clock::time_point due) {
    if (Clock::now() < due - sleep_margin) std::this_thread::sleep_until(due - sleep_margin);
    while (Clock::now() < due) std::this_thread::yield();
}

// Hands out requests in the order of their arrival. What was taken is served, so that the served
// ones are the first ones.
class Queue {
public:
    Queue(std::vector<std::int64_t> arrivals, double max_seconds)
        : arrivals_(std::move(arrivals)),
          start_(arrivals_.size()),
          end_(arrivals_.size()),
          last_begin_(Nanoseconds(2 * arrivals_.back()) + nanoseconds(max_seconds)) {}

    // All sessions at once, a thread each. Raises what the first one that failed has raised.
    void serve(std::deque<Session>& sessions, const Inputs& inputs) {
        std::vector<std::thread> threads;
        threads.reserve(sessions.size());
        try {
            for (auto& session : sessions) {
                threads.emplace_back([&] { serve(session, inputs); });
            }
        } catch (const std::system_error&) {
            stop_with(std::current_exception());
        }
        open(threads.size());
        for (auto& thread : threads) thread.join();
        if (error_) std::rethrow_exception(error_);
    }

    Record served() const {
        const auto first = [&](const std::vector<Nanoseconds::rep>& all) {
            return Record(std::vector(all.begin(), all.begin() + static_cast<long>(next_)));
        };
        return {
            {"arrivals", arrivals_.size()},
            {"start_ns", first(start_)},
            {"end_ns", first(end_)},
            {"stop_reason", next_ == arrivals_.size() ? "all-served" : "time-limit"},
        };
    }

private:
    // Waits until all workers are there: starting them takes no time of the requests.
    void wait_for_opening() {
        std::unique_lock lock(mutex_);
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return opened_; });
    }

    // Lets so many workers go when all of them wait: this is the time zero of arrivals.
    void open(std::size_t workers) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_ == workers; });
        opened_ = true;
        zero_ = Clock::now();
        changed_.notify_all();
    }

    std::optional<std::size_t> take() {
        const std::lock_guard lock(mutex_);
        if (next_ == arrivals_.size() || error_ || Clock::now() - zero_ > last_begin_) {
            return std::nullopt;
        }
        return next_++;
    }

    void serve(Session& session, const Inputs& inputs) {
        wait_for_opening();
        try {
            while (const auto request = take()) {
                wait_until(zero_ + Nanoseconds(arrivals_[*request]));
                start_[*request] = since_zero();
                session.run(inputs, inputs.full_batch(*request));
                end_[*request] = since_zero();
            }
        } catch (const std::exception&) {
            stop_with(std::current_exception());
        }
    }

    void stop_with(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(error);
    }

    Nanoseconds::rep since_zero() const { return Nanoseconds(Clock::now() - zero_).count(); }

    const std::vector<std::int64_t> arrivals_;  // nanoseconds, as are the next two
    std::vector<Nanoseconds::rep> start_, end_;
    const Nanoseconds last_begin_;
    Clock::time_point zero_;
    std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    std::size_t waiting_ = 0;
    bool opened_ = false;
    std::size_t next_ = 0;
    std::exception_ptr error_;
};

}  // namespace

Record run_load(Runtime& runtime, const Arguments& given, const Options& options,
                const Inputs& inputs) {
    Queue queue(read_arrivals(given.arrivals), given.max_seconds);
    // Sessions stay where they are: a vector would move them.
    std::deque<Session> sessions;
    for (std::size_t i = 0; i < given.sessions; ++i) {
        sessions.emplace_back(runtime.environment(), given.model, given.provider, options);
    }
    auto& first = sessions.front();
    first.require_inputs(inputs.names());
    first.run(inputs, inputs.full_batch(0));
    const Nanoseconds first_result = Clock::now().time_since_epoch();
    write_outputs(first, inputs, given.outputs);
    for (auto& session : sessions) warm_up(session, inputs, given.warmup);
    queue.serve(sessions, inputs);
    Record record{
        {"peak_memory_bytes", peak_memory()},
        {"session_ns", first.created().count()},
        {"first_result_ns", first_result.count()},
        {"sessions", given.sessions},
    };
    record.update(queue.served());
    record.update(outputs_in(given.outputs, inputs));
    return record;
}

}  // namespace transect
