#include "measure.hpp"

#include <algorithm>
#include <cmath>

#include "turns.hpp"

namespace {

constexpr double interval_width = 0.02, growth = 1.25;
constexpr std::size_t profiled_runs = 10;

// Writes a batch behind those before: numbers as they are, texts with the length before each.
// `first`: the shape in the first batch.
void write(const Output& output, std::vector<std::int64_t>& first, const std::string& path,
           Cut cut) {
    const auto& shape = output.shape;
    if (first.empty()) first = shape;
    if (cut.rows > 0 && (shape.empty() || static_cast<std::size_t>(shape[0]) != cut.rows ||
                         !std::equal(shape.begin() + 1, shape.end(), first.begin() + 1,
                                     first.end()))) {
        throw Failure(Cause::bad_input, std::string("output '") + output.name + "' has shape " +
                                            json(shape) + ", expected a first axis of " +
                                            std::to_string(cut.rows) +
                                            " and otherwise one shape for every batch");
    }
    const bool is_text = output.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    const std::string_view bytes(output.data.data(), output.bytes);
    std::string texts;
    for (std::size_t i = 0; is_text && i < output.elements; ++i) {
        const auto begin = output.offsets[i];
        const auto end = i + 1 == output.elements ? output.bytes : output.offsets[i + 1];
        const auto size = static_cast<std::uint32_t>(end - begin);
        texts.append(reinterpret_cast<const char*>(&size), sizeof size);
        texts.append(bytes.substr(begin, size));
    }
    write_file(path, cut.first == 0 ? O_TRUNC : O_APPEND, {is_text ? texts : bytes});
}

// Runs all rows and writes what comes out; returns the fact `outputs`.
std::string run_rows(Session& session, const Inputs& inputs, const std::string& folder) {
    const auto& outputs = session.outputs;
    std::vector<std::vector<std::int64_t>> firsts(outputs.size());
    // Without a batch: once.
    Cut cut;
    do {
        cut.rows = std::min(inputs.batch, inputs.rows - cut.first);
        session.run(inputs, cut);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto path = folder + "/output-" + std::to_string(i) + ".bin";
            if (outputs[i].type) write(outputs[i], firsts[i], path, cut);
        }
        cut.first += cut.rows;
    } while (cut.first < inputs.rows);
    std::string told;
    for (const auto& output : outputs) {
        auto all = output.shape;
        if (inputs.rows > 0 && !all.empty()) all[0] = static_cast<std::int64_t>(inputs.rows);
        told += told.empty() ? "" : ", ";
        told += output.type ? "[" + json(output.type) + ", " + json(all) + "]" : "null";
    }
    return "[" + told + "]";
}

// Whether the 95 % interval of the median, by ranks (J.-Y. Le Boudec, "Performance Evaluation of
// Computer and Communication Systems", 2010, theorem 2.1), is narrow enough.
bool is_narrow(const std::vector<Times>& times) {
    const auto n = static_cast<double>(times.size());
    const double low = std::floor(n / 2 - 0.98 * std::sqrt(n));
    const double high = std::ceil(n / 2 + 1 + 0.98 * std::sqrt(n));
    if (low < 1 || high > n) return false;
    std::vector<std::int64_t> runs;
    for (const auto& one : times) runs.push_back(one.run);
    std::sort(runs.begin(), runs.end());
    const auto ranked = [&](double rank) { return runs[static_cast<std::size_t>(rank) - 1]; };
    const auto below = runs[(runs.size() - 1) / 2], above = runs[runs.size() / 2];
    const double median = 0.5 * static_cast<double>(below + above);
    return static_cast<double>(ranked(high) - ranked(low)) <= interval_width * median;
}

// Times iterations; returns why it stopped.
const char* measure(Session& session, const Plan& plan, const Inputs& inputs,
                    std::vector<Times>& times) {
    std::size_t next_look = plan->min_runs;
    const auto deadline = Clock::now() + Nanoseconds(plan->max_ns);
    while (true) {
        times.push_back(session.run(inputs, inputs.full_batch(times.size())));
        if (times.size() < plan->min_runs) continue;
        if (times.size() >= next_look) {
            next_look = static_cast<std::size_t>(std::ceil(times.size() * growth));
            if (is_narrow(times)) return "interval-reached";
        }
        if (Clock::now() >= deadline) return "time-limit";
    }
}

// Times iterations turn by turn; nothing is timed while it waits.
const char* take_turns(Session& session, const Inputs& inputs, const Turns& turns,
                       std::vector<Times>& times) {
    for (auto left = turns.next('r'); left > 0; left = turns.next('d')) {
        for (; left > 0; --left) {
            times.push_back(session.run(inputs, inputs.full_batch(times.size())));
        }
    }
    return "turns";
}

// What came of a case. A provider that is not there ends them all.
Fields verdict(Ort::Env& environment, const Plan& plan, const entry* model) {
    const auto group = static_cast<int>(model->group);
    try {
        const Inputs inputs(plan, group);
        Session session(environment, plan, model);
        return {{"status", json("ok")},
                {"outputs", run_rows(session, inputs, plan.text(ROLE_OUTPUTS, group))}};
    } catch (const std::exception& error) {
        const auto failure = as_failure(error);
        if (failure.cause == Cause::no_provider) throw failure;
        const bool unsupported = failure.cause == Cause::unsupported;
        return {{"status", json(unsupported ? "unsupported" : "failed")},
                {"message", json(failure.what())}};
    }
}

}  // namespace

Fields run_all(Session& session, const Plan& plan, const Inputs& inputs) {
    session.run(inputs, inputs.full_batch(0));
    const Nanoseconds first_result = Clock::now().time_since_epoch();
    return {{"session_ns", json(session.created_ns)},
            {"first_result_ns", json(first_result.count())},
            {"outputs", run_rows(session, inputs, plan.text(ROLE_OUTPUTS))}};
}

void warm_up(Session& session, const Inputs& inputs, std::size_t iterations) {
    for (std::size_t i = 0; i < iterations; ++i) session.run(inputs, inputs.full_batch(i));
}

Fields run_latency(Ort::Env& environment, const Plan& plan, const Result& result) {
    const auto* model = plan.first(ROLE_MODEL);
    const Inputs inputs(plan, ANY_GROUP);
    const Turns turns;
    std::vector<Times> times;
    Fields facts;
    {
        Session session(environment, plan, model);
        facts = run_all(session, plan, inputs);
        warm_up(session, inputs, plan->warmup);
        const char* stop_reason = turns ? take_turns(session, inputs, turns, times)
                                        : measure(session, plan, inputs, times);
        facts.emplace_back("stop_reason", json(stop_reason));
        result.write_process();
        result.write("times.bin", times);
    }
    if (!plan.first(ROLE_PROFILE)) return facts;
    Session session(environment, plan, model, plan.text(ROLE_PROFILE));
    std::vector<std::int64_t> runs;
    while (runs.size() < profiled_runs) {
        runs.push_back(session.run(inputs, inputs.full_batch(0)).run);
    }
    const auto file = session.handle.EndProfilingAllocated(session.allocator);
    facts.emplace_back("profile_file", json(file.get()));
    result.write("profile_times.bin", runs);
    return facts;
}

Fields run_cases(Ort::Env& environment, const Plan& plan, const Result& result) {
    for (const auto* model : plan.all(ROLE_MODEL)) {
        Fields line{{"case", json(model->group)}, {"status", json("started")}};
        result.say(line);
        line.pop_back();
        for (auto& field : verdict(environment, plan, model)) line.push_back(std::move(field));
        result.say(line);
    }
    return {};
}
