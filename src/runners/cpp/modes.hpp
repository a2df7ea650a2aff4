// The four modes. Three return their fields of the record; `cases` writes lines of its own.

#pragma once

#include "record.hpp"

namespace transect {

Record run_latency(Runtime& runtime, const Arguments& given, const Options& options,
                   const Inputs& inputs);

Record run_load(Runtime& runtime, const Arguments& given, const Options& options,
                const Inputs& inputs);

// Raises Diverged where a number is not finite.
Record run_train(Runtime& runtime, const Arguments& given, const Options& options,
                 const Inputs& inputs);

void run_cases(Runtime& runtime, const Arguments& given, const Options& options);

}  // namespace transect
