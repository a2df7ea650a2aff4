/** CLOCK_MONOTONIC in nanoseconds, the same in all threads. */

const zero = Number(process.hrtime.bigint()) - performance.now() * 1e6;

/** Return now; `performance.now()` begins anew in each thread, hrtime makes garbage. */
export function monotonicNs() {
  return zero + performance.now() * 1e6;
}
