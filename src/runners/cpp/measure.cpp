#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace transect {

namespace {

constexpr double interval_width = 0.02, growth = 1.25;

using Series = std::vector<Nanoseconds::rep>;

// Whether the 95 % interval of the median, by ranks (J.-Y. Le Boudec, "Performance Evaluation of
// Computer and Communication Systems", 2010, theorem 2.1), is narrow enough.
bool is_narrow(Series values) {
    const auto n = static_cast<double>(values.size());
    const double low = std::floor(n / 2 - 0.98 * std::sqrt(n));
    const double high = std::ceil(n / 2 + 1 + 0.98 * std::sqrt(n));
    if (low < 1 || high > n) return false;
    std::sort(values.begin(), values.end());
    const auto ranked = [&](double rank) { return values[static_cast<std::size_t>(rank) - 1]; };
    const auto middle = values.size() / 2;
    const auto below = values[(values.size() - 1) / 2];
    const double median = 0.5 * static_cast<double>(below + values[middle]);
    return static_cast<double>(ranked(high) - ranked(low)) <= interval_width * median;
}

}  // namespace

Nanoseconds nanoseconds(double seconds) {
    return Nanoseconds(static_cast<Nanoseconds::rep>(std::min(seconds, 1e9) * 1e9));
}

void warm_up(Session& session, const Inputs& inputs, std::size_t iterations) {
    for (std::size_t i = 0; i < iterations; ++i) session.run(inputs, inputs.full_batch(i));
}

Record measure(Session& session, const Inputs& inputs, const Arguments& given) {
    Series bind, run, copy;
    std::size_t next_look = given.min_runs;
    const char* stop = nullptr;
    const auto deadline = Clock::now() + nanoseconds(given.max_seconds);
    while (!stop) {
        const auto times = session.run(inputs, inputs.full_batch(run.size()));
        bind.push_back(times.bind.count());
        run.push_back(times.run.count());
        copy.push_back(times.copy.count());
        if (run.size() < given.min_runs) continue;
        if (run.size() >= next_look) {
            next_look = static_cast<std::size_t>(std::ceil(run.size() * growth));
            if (is_narrow(run)) stop = "interval-reached";
        }
        if (!stop && Clock::now() >= deadline) stop = "time-limit";
    }
    Record memory = peak_memory();
    return {{"peak_memory_bytes", memory}, {"bind_ns", bind}, {"run_ns", run}, {"copy_ns", copy}, {"stop_reason", stop}};
}

}  // namespace transect
