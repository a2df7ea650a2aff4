/** When a median is known well enough. */

/** @import { Limits, Parts, Series } from './types.mjs' */

const WIDTH = 0.02;
const Z95 = 1.959964;
const GROWTH = 1.25;

/**
 * Tell whether the 95 % interval of the median is at most `width` of the median wide.
 *
 * Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
 * Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
 * A clock that ticks coarsely makes values alike that are not: its step counts to the width.
 * @param {number[]} values
 * @param {number} resolution the clock's step, in the unit of the values
 */
export function intervalIsNarrow(values, resolution, width = WIDTH) {
  const n = values.length;
  const low = Math.floor(0.5 * n - 0.5 * Z95 * Math.sqrt(n));
  const high = Math.ceil(0.5 * n + 1 + 0.5 * Z95 * Math.sqrt(n));
  if (low < 1 || high > n) return false;
  const ordered = Float64Array.from(values).sort();
  const median = 0.5 * (ordered[(n - 1) >> 1] + ordered[n >> 1]);
  return ordered[high - 1] - ordered[low - 1] + resolution <= width * median;
}

/**
 * Warm up, then time until the interval is narrow or the time is up.
 *
 * The interval is looked at after `minRuns` iterations and then each time their number has grown by
 * a quarter. `maxSeconds` is the wall time since the first timed iteration; it ends nothing before
 * `minRuns`. JavaScript cannot turn garbage collection off: it collects before, if it is let.
 * @template Batch
 * @param {(batch: Batch) => Promise<Parts>} step
 * @param {Batch[]} batches
 * @param {Limits} limits
 * @param {number} resolutionNs
 * @returns {Promise<Series>}
 */
export async function measure(step, batches, { warmup, minRuns, maxSeconds }, resolutionNs) {
  for (let index = 0; index < warmup; index++) await step(batches[index % batches.length]);
  /** @type {[number[], number[], number[]]} */
  const [bind, run, copy] = [[], [], []];
  globalThis.gc?.();
  const deadline = performance.now() + maxSeconds * 1e3;
  for (let nextCheck = minRuns; ;) {
    const times = await step(batches[run.length % batches.length]);
    bind.push(times[0]);
    run.push(times[1]);
    copy.push(times[2]);
    if (run.length < minRuns) continue;
    const series = { bind_ns: bind, run_ns: run, copy_ns: copy };
    if (run.length >= nextCheck) {
      nextCheck = Math.ceil(run.length * GROWTH);
      if (intervalIsNarrow(run, resolutionNs))
        return { ...series, stop_reason: 'interval-reached' };
    }
    if (performance.now() >= deadline) return { ...series, stop_reason: 'time-limit' };
  }
}
