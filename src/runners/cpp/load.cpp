#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "measure.hpp"

namespace {

// A sleep may end late by about this much; the rest of the time is yielded away.
constexpr Nanoseconds sleep_margin = std::chrono::microseconds(200);

void wait_until(Clock::time_point due) {
    if (Clock::now() < due - sleep_margin) std::this_thread::sleep_until(due - sleep_margin);
    while (Clock::now() < due) std::this_thread::yield();
}

// Nanoseconds from the time zero of arrivals.
struct Served {
    std::int64_t start, end;
};

// Hands out requests in the order of their arrival. What was taken is served, so that the served
// ones are the first ones.
class Queue {
public:
    explicit Queue(const Plan& plan)
        : arrivals_(reinterpret_cast<const std::int64_t*>(data_of(plan.first(ROLE_ARRIVALS)))),
          last_begin_(plan->last_begin_ns),
          served_(entry_elements(plan.first(ROLE_ARRIVALS))) {}

    // All sessions at once, a thread each. Raises what the first one that failed has raised.
    void serve(std::deque<Session>& sessions, const Inputs& inputs) {
        std::vector<std::thread> threads;
        threads.reserve(sessions.size());
        try {
            for (auto& one : sessions) threads.emplace_back([&] { serve(one, inputs); });
        } catch (const std::system_error&) {
            stop_with(std::current_exception());
        }
        open(threads.size());
        for (auto& thread : threads) thread.join();
        if (error_) std::rethrow_exception(error_);
    }

    bool all_served() const { return next_ == served_.size(); }

    std::vector<Served> served() const {
        return {served_.begin(), served_.begin() + static_cast<std::ptrdiff_t>(next_)};
    }

private:
    // Lets so many workers go when all of them wait: this is the time zero of arrivals.
    void open(std::size_t workers) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_ == workers; });
        opened_ = true;
        zero_ = Clock::now();
        changed_.notify_all();
    }

    // Waits until all workers are there: starting them takes no time of the requests.
    void wait_for_opening() {
        std::unique_lock lock(mutex_);
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return opened_; });
    }

    // Whether there is one more to serve, and which.
    bool take(std::size_t& request) {
        const std::lock_guard lock(mutex_);
        if (all_served() || error_ || Clock::now() - zero_ > last_begin_) return false;
        request = next_++;
        return true;
    }

    void serve(Session& session, const Inputs& inputs) {
        wait_for_opening();
        try {
            for (std::size_t request; take(request);) {
                wait_until(zero_ + Nanoseconds(arrivals_[request]));
                served_[request].start = between(zero_, Clock::now());
                session.run(inputs, inputs.full_batch(request));
                served_[request].end = between(zero_, Clock::now());
            }
        } catch (const std::exception&) {
            stop_with(std::current_exception());
        }
    }

    void stop_with(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(error);
    }

    const std::int64_t* const arrivals_;
    const Nanoseconds last_begin_;
    std::vector<Served> served_;
    Clock::time_point zero_;
    std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    std::size_t waiting_ = 0, next_ = 0;
    bool opened_ = false;
    std::exception_ptr error_;
};

}  // namespace

Fields run_load(Ort::Env& environment, const Plan& plan, const Result& result) {
    const Inputs inputs(plan, ANY_GROUP);
    Queue queue(plan);
    // Sessions stay where they are: a vector would move them.
    std::deque<Session> sessions;
    for (std::size_t i = 0; i < plan->sessions; ++i) {
        sessions.emplace_back(environment, plan, plan.first(ROLE_MODEL));
    }
    auto facts = run_all(sessions.front(), plan, inputs);
    for (auto& session : sessions) warm_up(session, inputs, plan->warmup);
    queue.serve(sessions, inputs);
    result.write_process();
    result.write("times.bin", queue.served());
    facts.emplace_back("stop_reason", json(queue.all_served() ? "all-served" : "time-limit"));
    return facts;
}
