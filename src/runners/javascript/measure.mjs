/** Levels `latency` and `cases` of the runner contract. Node.js and the page have them. */

import { Fault, pack } from './faults.mjs';
import { ROLE, countOf, tensorOf } from './plan.mjs';
import { Engine } from './session.mjs';

/** @import { Plan } from './plan.mjs' */
/** @import { Bytes, Feed, Host, Input, Taken } from './types.mjs' */

const [WIDTH, Z95, GROWTH] = [0.02, 1.959964, 1.25];
const PROFILED_RUNS = 10;

/**
 * Run all rows, then measure; return what the last line says.
 * @param {Host} host
 */
export async function latency(host) {
  const { plan } = host;
  const turns = await host.turns?.();
  const feed = await feedOf(host);
  const engine = await openEngine(host);
  const batches = fullBatches(feed, plan.batch);
  const first = await firstResults(engine, feed, host);
  await warmUp(engine, batches, plan);
  /** @type {number[][]} */
  const series = [[], [], []];
  const step = () => timed(engine, batches, series);
  const stop_reason = turns
    ? await takeTurns(step, turns)
    : await untilNarrow(step, series[1], plan, host.resolutionNs);
  await host.snapshot();
  const [bind, run, copy] = series;
  const times = run.flatMap((time, index) => [bind[index], time, copy[index]]);
  await host.write(plan.one(ROLE.out), 'times.bin', int64(times), 'w');
  const facts = { ...engine.facts, ...first, stop_reason };
  if (!plan.one(ROLE.profile)) return facts;
  const profiled = await openEngine(host, 0, true);
  const runs = [];
  while (runs.length < PROFILED_RUNS) runs.push((await profiled.step(batches[0]))[1]);
  await host.write(plan.one(ROLE.out), 'profile_times.bin', int64(runs), 'w');
  return { ...facts, profile_file: await host.profileFile(() => profiled.endProfile()) };
}

/**
 * Run each model once; say of each what came of it. Raises what ends the program.
 * @param {Host} host
 */
export async function cases(host) {
  for (const { group } of host.plan.all(ROLE.model)) {
    await host.say({ case: group, status: 'started' });
    await host.say({ case: group, ...(await outcome(host, group)) });
  }
  return {};
}

/**
 * @param {Host} host
 * @param {number} group
 */
async function outcome(host, group) {
  try {
    const feed = await feedOf(host, group);
    const engine = await openEngine(host, group);
    try {
      if (host.plan.all(ROLE.output, group).some(({ dtype }) => !dtype)) throw engine.noTensors();
      return { status: 'ok', outputs: await engine.allRows([feed], host, group) };
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
 * @param {Host} host
 * @returns {Promise<Feed>}
 */
export function feedOf(host, group = 0) {
  const inputs = host.plan.all(ROLE.input, group);
  return Promise.all(inputs.map(async (entry) => tensorOf(entry, await host.read(entry))));
}

/** @param {Host} host */
export async function openEngine(host, group = 0, profiled = false) {
  return new Engine(await host.open(host.plan.one(ROLE.model, group), profiled), host, group);
}

/**
 * Run the first batch alone, then all rows; return what the last line says of it.
 * @param {Engine} engine
 * @param {Feed} feed
 * @param {Host} host
 */
export async function firstResults(engine, feed, host) {
  const { batch } = host.plan;
  await engine.step(fullBatches(feed, batch)[0]);
  const first_result_ns = await host.monotonicNs();
  return { first_result_ns, outputs: await engine.allRows(allBatches(feed, batch), host) };
}

/**
 * Return all batches, the last one perhaps partial; without a batch one, of all.
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
 * Return the full batches, the rest is left out; without a batch one, of all.
 * @param {Feed} feed
 * @param {number} batch
 */
export function fullBatches(feed, batch) {
  return allBatches(feed, batch).filter((part) => !batch || part[0].shape[0] === batch);
}

/**
 * Return some rows; numbers are not copied.
 * @param {Input} input
 * @param {number} start
 * @param {number} end
 * @returns {Input}
 */
function rowsOf({ name, dtype, data, shape: [, ...rest] }, start, end) {
  const [from, to] = [start * countOf(rest), end * countOf(rest)];
  const own = Array.isArray(data) ? data.slice(from, to) : data.subarray(from, to);
  return { name, dtype, shape: [end - start, ...rest], data: own };
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
 * Run some times, then collect garbage, if it is let: JavaScript cannot turn collection off.
 * @param {Engine} engine
 * @param {Feed[]} batches
 * @param {Plan} plan
 */
export async function warmUp(engine, batches, { warmup }) {
  for (let index = 0; index < warmup; index++) await engine.step(batches[index % batches.length]);
  globalThis.gc?.();
}

/**
 * Run the next batch and keep its times.
 * @param {Engine} engine
 * @param {Feed[]} batches
 * @param {number[][]} series of bind, run and copy
 */
async function timed(engine, batches, [bind, run, copy]) {
  const times = await engine.step(batches[run.length % batches.length]);
  bind.push(times[0]);
  run.push(times[1]);
  copy.push(times[2]);
}

/**
 * Time turn by turn; nothing is timed while it waits. Returns why it stopped.
 * @param {() => Promise<void>} step
 * @param {Taken} turns
 */
async function takeTurns(step, turns) {
  let left = await turns.next('r');
  while (left > 0) {
    for (; left > 0; left--) await step();
    left = await turns.next('d');
  }
  return 'turns';
}

/**
 * Time until the interval is narrow or the time is up; return which.
 * @param {() => Promise<void>} step
 * @param {number[]} run
 * @param {Plan} plan
 * @param {number} resolutionNs
 */
async function untilNarrow(step, run, { minRuns, maxNs }, resolutionNs) {
  const deadline = performance.now() + maxNs / 1e6;
  for (let nextCheck = minRuns; ;) {
    await step();
    if (run.length < minRuns) continue;
    if (run.length >= nextCheck) {
      nextCheck = Math.ceil(run.length * GROWTH);
      if (intervalIsNarrow(run, resolutionNs)) return 'interval-reached';
    }
    if (performance.now() >= deadline) return 'time-limit';
  }
}

/**
 * Return the bytes of whole numbers.
 * @param {number[]} values
 * @returns {Bytes}
 */
export function int64(values) {
  return new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
}
