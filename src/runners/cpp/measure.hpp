// Iterations until the median is known well.

#pragma once

#include "record.hpp"
#include "session.hpp"

namespace transect {

// Runs full batches without keeping the times.
void warm_up(Session& session, const Inputs& inputs, std::size_t iterations);

// Times iterations; returns their parts and why it stopped.
Record measure(Session& session, const Inputs& inputs, const Arguments& given);

// Seconds as nanoseconds; what is beyond 30 years is 30 years.
Nanoseconds nanoseconds(double seconds);

}  // namespace transect
