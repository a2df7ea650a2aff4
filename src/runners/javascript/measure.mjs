/** Levels `latency` and `cases` of the runner contract. Node.js and the page have them. */

import { Fault, pack } from './faults.mjs';
import { ROLE, countOf, tensorOf } from './plan.mjs';
import { Engine } from './session.mjs';

/** @import { Plan } from './plan.mjs' */
/** @import { Bytes, Feed, Host, Input, Parts } from './types.mjs' */

const WIDTH = 0.02;
const Z95 = 1.959964;
const GROWTH = 1.25;
const PROFILED_RUNS = 10;

/**
 * Run all rows, then measure; return what the last line says.
 * @param {Plan} plan
 * @param {Host} host
 */
export async function latency(plan, host) {
  const feed = await feedOf(plan, host);
  const engine = await openEngine(plan, host);
  const batches = fullBatches(feed, plan.batch);
  const first = await firstResults(engine, feed, plan, host);
  const step = (/** @type {Feed} */ part) => engine.step(part);
  const { times, stop_reason } = await measure(step, batches, plan, host.resolutionNs);
  await host.snapshot();
  await host.write(plan.one(ROLE.out), 'times.bin', int64(times), 'w');
  const facts = { ...engine.facts, ...first, stop_reason };
  if (!plan.one(ROLE.profile)) return facts;
  const profiled = await openEngine(plan, host, 0, true);
  const runs = [];
  for (let run = 0; run < PROFILED_RUNS; run++) runs.push((await profiled.step(batches[0]))[1]);
  await host.write(plan.one(ROLE.out), 'profile_times.bin', int64(runs), 'w');
  return { ...facts, profile_file: await host.profileFile(() => profiled.endProfile()) };
}

/**
 * Run each model once; say of each what came of it. Raises what ends the program.
 * @param {Plan} plan
 * @param {Host} host
 */
export async function cases(plan, host) {
  for (const { group } of plan.all(ROLE.model)) {
    await host.say({ case: group, status: 'started' });
    await host.say({ case: group, ...(await outcome(plan, host, group)) });
  }
  return {};
}

/**
 * @param {Plan} plan
 * @param {Host} host
 * @param {number} group
 */
async function outcome(plan, host, group) {
  try {
    const feed = await feedOf(plan, host, group);
    const engine = await openEngine(plan, host, group);
    try {
      if (plan.all(ROLE.output, group).some(({ dtype }) => !dtype)) throw engine.noTensors();
      const outputs = await engine.allRows([feed], plan, host, plan.one(ROLE.outputs, group));
      return { status: 'ok', outputs };
    } finally {
      await engine.close();
    }
  } catch (thrown) {
    const { kind, message } = pack(thrown);
    if (thrown instanceof Fault && ['crash', 'skipped'].includes(kind)) throw thrown;
    return { status: kind === 'unsupported' ? kind : 'failed', message };
  }
}

/**
 * Return the inputs of a case.
 * @param {Plan} plan
 * @param {Host} host
 * @returns {Promise<Feed>}
 */
export function feedOf(plan, host, group = 0) {
  const inputs = plan.all(ROLE.input, group);
  return Promise.all(inputs.map(async (entry) => tensorOf(entry, await host.read(entry))));
}

/**
 * @param {Plan} plan
 * @param {Host} host
 */
export async function openEngine(plan, host, group = 0, profiled = false) {
  const opened = await host.open(plan.one(ROLE.model, group), profiled);
  return new Engine(opened, plan.all(ROLE.input, group), plan.all(ROLE.output, group));
}

/**
 * Run the first batch alone, then all rows; return what the last line says of it.
 * @param {Engine} engine
 * @param {Feed} feed
 * @param {Plan} plan
 * @param {Host} host
 */
export async function firstResults(engine, feed, plan, host) {
  await engine.step(fullBatches(feed, plan.batch)[0]);
  const first_result_ns = await host.monotonicNs();
  const parts = allBatches(feed, plan.batch);
  const outputs = await engine.allRows(parts, plan, host, plan.one(ROLE.outputs));
  return { first_result_ns, outputs };
}

/**
 * Return the full batches, the rest is left out; without a batch one, of all.
 * @param {Feed} feed
 * @param {number} batch
 */
export function fullBatches(feed, batch) {
  if (!batch) return [feed];
  return allBatches(feed, batch).slice(0, Math.floor(feed[0].shape[0] / batch));
}

/**
 * Return all batches, the last one perhaps partial; numbers are not copied.
 * @param {Feed} feed
 * @param {number} batch
 */
function allBatches(feed, batch) {
  if (!batch) return [feed];
  const found = [];
  for (let start = 0; start < feed[0].shape[0]; start += batch) {
    found.push(feed.map((input) => rowsOf(input, start, Math.min(start + batch, input.shape[0]))));
  }
  return found;
}

/**
 * @param {Input} input
 * @param {number} start
 * @param {number} end
 * @returns {Input}
 */
function rowsOf(input, start, end) {
  const rest = input.shape.slice(1);
  const [from, to] = [start * countOf(rest), end * countOf(rest)];
  const data = Array.isArray(input.data)
    ? input.data.slice(from, to)
    : input.data.subarray(from, to);
  return { ...input, shape: [end - start, ...rest], data };
}

/**
 * Tell whether the 95 % interval of the median is at most `WIDTH` of the median wide.
 *
 * Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
 * Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
 * A clock that ticks coarsely makes values alike that are not: its step counts to the width.
 * @param {number[]} values
 * @param {number} resolution the clock's step, in the unit of the values
 */
function intervalIsNarrow(values, resolution) {
  const n = values.length;
  const low = Math.floor(0.5 * n - 0.5 * Z95 * Math.sqrt(n));
  const high = Math.ceil(0.5 * n + 1 + 0.5 * Z95 * Math.sqrt(n));
  if (low < 1 || high > n) return false;
  const ordered = Float64Array.from(values).sort();
  const median = 0.5 * (ordered[(n - 1) >> 1] + ordered[n >> 1]);
  return ordered[high - 1] - ordered[low - 1] + resolution <= WIDTH * median;
}

/**
 * Warm up, then time until the interval is narrow or the time is up.
 *
 * JavaScript cannot turn garbage collection off: it collects before, if it is let.
 * @param {(batch: Feed) => Promise<Parts>} step
 * @param {Feed[]} batches
 * @param {{warmup: number, minRuns: number, maxNs: number}} limits
 * @param {number} resolutionNs
 */
async function measure(step, batches, { warmup, minRuns, maxNs }, resolutionNs) {
  for (let index = 0; index < warmup; index++) await step(batches[index % batches.length]);
  /** @type {[number[], number[], number[]]} */
  const [bind, run, copy] = [[], [], []];
  globalThis.gc?.();
  const deadline = performance.now() + maxNs / 1e6;
  let stop_reason = '';
  for (let nextCheck = minRuns; !stop_reason;) {
    const times = await step(batches[run.length % batches.length]);
    bind.push(times[0]);
    run.push(times[1]);
    copy.push(times[2]);
    if (run.length < minRuns) continue;
    if (run.length >= nextCheck) {
      nextCheck = Math.ceil(run.length * GROWTH);
      if (intervalIsNarrow(run, resolutionNs)) stop_reason = 'interval-reached';
    }
    if (!stop_reason && performance.now() >= deadline) stop_reason = 'time-limit';
  }
  return { times: run.flatMap((time, index) => [bind[index], time, copy[index]]), stop_reason };
}

/**
 * Return the bytes of whole numbers.
 * @param {number[]} values
 * @returns {Bytes}
 */
export function int64(values) {
  return new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
}
