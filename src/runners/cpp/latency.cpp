#include "measure.hpp"
#include "modes.hpp"
#include "outputs.hpp"

namespace transect {

namespace {

constexpr int profiled_runs = 10;

Record profile(Runtime& runtime, const Arguments& given, const Options& options,
               const Inputs& inputs) {
    Session session(runtime.environment(), given.model, given.provider, options, given.profile);
    std::vector<Nanoseconds::rep> runs;
    for (int i = 0; i < profiled_runs; ++i) {
        runs.push_back(session.run(inputs, inputs.full_batch(0)).run.count());
    }
    return {{"profile_run_ns", runs}, {"profile_file", session.end_profile()}};
}

Record run_session(Runtime& runtime, const Arguments& given, const Options& options,
                   const Inputs& inputs) {
    Session session(runtime.environment(), given.model, given.provider, options);
    session.require_inputs(inputs.names());
    session.run(inputs, inputs.full_batch(0));
    const Nanoseconds first_result = Clock::now().time_since_epoch();
    write_outputs(session, inputs, given.outputs);
    warm_up(session, inputs, given.warmup);
    Record record{
        {"session_ns", session.created().count()},
        {"first_result_ns", first_result.count()},
    };
    record.update(measure(session, inputs, given));
    record.update(outputs_in(given.outputs, inputs));
    return record;
}

}  // namespace

Record run_latency(Runtime& runtime, const Arguments& given, const Options& options,
                   const Inputs& inputs) {
    auto record = run_session(runtime, given, options, inputs);
    if (given.profile) record.update(profile(runtime, given, options, inputs));
    return record;
}

}  // namespace transect
