/** Mode `load` of the runner contract, one worker's part of it: an open loop. */

/** @import { Feed, Queue, Served } from './types.mjs' */

import { Engine } from './engine.mjs';

// A sleep may end late by this much.
const SLEEP_MARGIN_NS = 200_000;
export const NEXT = 0;
export const FAULT = 1;

/**
 * @param {Engine} engine
 * @param {Feed[]} batches
 * @param {number} iterations
 */
export async function warmUp(engine, batches, iterations) {
  for (let index = 0; index < iterations; index++) {
    await engine.step(batches[index % batches.length]);
  }
  globalThis.gc?.();
}

/**
 * Take requests in their order until there is none, or the time is up.
 * @param {Engine} engine
 * @param {Feed[]} batches
 * @param {Queue} queue
 * @param {() => number} clock nanoseconds, the same in all workers
 * @param {number} zero the start, on that clock
 * @param {() => unknown} [yieldCore] lets others have the core; a page has nothing that does
 * @returns {Promise<Served>}
 */
export async function serve(engine, batches, queue, clock, zero, yieldCore = () => {}) {
  const { control, arrivals, limitNs } = queue;
  const shared = new Int32Array(control);
  /** @type {Served} */
  const served = { request: [], start: [], end: [] };
  // Looked at before a request is taken: so the served ones are always the first ones.
  while (clock() - zero <= limitNs && Atomics.load(shared, FAULT) === 0) {
    const request = Atomics.add(shared, NEXT, 1);
    if (request >= arrivals.length) break;
    waitUntil(zero + arrivals[request], clock, yieldCore);
    const start = clock() - zero;
    await engine.step(batches[request % batches.length]);
    served.request.push(request);
    served.start.push(Math.round(start));
    served.end.push(Math.round(clock() - zero));
  }
  return served;
}

const nobodyWakes = new Int32Array(new SharedArrayBuffer(4));

/**
 * Sleep until shortly before, then yield. A sleep of no time at all would yield nothing.
 * @param {number} due
 * @param {() => number} clock
 * @param {() => unknown} yieldCore
 */
function waitUntil(due, clock, yieldCore) {
  const left = due - clock();
  if (left > SLEEP_MARGIN_NS) Atomics.wait(nobodyWakes, 0, 0, (left - SLEEP_MARGIN_NS) / 1e6);
  while (clock() < due) yieldCore();
}

/**
 * Return what all workers served, in the order of arrival.
 * @param {Served[]} parts
 * @param {number} arrivals
 */
export function gather(parts, arrivals) {
  const all = parts.flatMap(({ request, start, end }) =>
    request.map((index, i) => ({ index, start: start[i], end: end[i] })),
  );
  all.sort((a, b) => a.index - b.index);
  return {
    arrivals,
    start_ns: all.map((one) => one.start),
    end_ns: all.map((one) => one.end),
    stop_reason: all.length === arrivals ? 'all-served' : 'time-limit',
  };
}
