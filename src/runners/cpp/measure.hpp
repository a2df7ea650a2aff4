// What the levels do. They return facts of the last line.

#pragma once

#include "result.hpp"
#include "session.hpp"

Fields run_latency(Ort::Env& environment, const Plan& plan, const Result& result);
Fields run_load(Ort::Env& environment, const Plan& plan, const Result& result);
Fields run_cases(Ort::Env& environment, const Plan& plan, const Result& result);
Fields run_train(Ort::Env& environment, const Plan& plan, const Result& result);

// What `latency` and `load` begin with: the first result, then all rows, whose outputs are written.
Fields run_all(Session& session, const Plan& plan, const Inputs& inputs);

// Runs full batches without keeping the times.
void warm_up(Session& session, const Inputs& inputs, std::size_t iterations);
