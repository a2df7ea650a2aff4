/** Level `load` of the runner contract: an open loop. Node.js and the page have it. */

import { feedOf, firstResults, fullBatches, int64, openEngine, warmUp } from './measure.mjs';
import { ROLE } from './plan.mjs';

/** @import { Host } from './types.mjs' */

/**
 * @typedef {object} Order what a worker is told
 * @property {'open' | 'firstResults' | 'warmUp' | 'serve'} step
 * @property {SharedArrayBuffer} control Int32: the next request, and 1 when a worker had a fault
 * @property {number} [zero] when time begins, on the clock that all workers have
 *
 * @typedef {(order: Order) => Promise<any>} Ask has a worker do it; raises its fault
 * @typedef {{request: number[], start: number[], end: number[]}} Served by one worker
 * @typedef {Awaited<ReturnType<typeof open>>} Ready
 */

// A sleep may end late by this much.
const SLEEP_MARGIN_NS = 200_000;
const NEXT = 0;
const FAULT = 1;

/**
 * Serve the arrivals with some workers at once; return what the last line says.
 * @param {Pick<Host, 'plan' | 'sharedNs' | 'snapshot' | 'write'>} host
 * @param {() => Ask} spawn makes a worker
 */
export async function load(host, spawn) {
  const { plan } = host;
  const control = new SharedArrayBuffer(8);
  /** @type {Ask[]} */
  const workers = [];
  const opened = [];
  // Each step on all sessions before the next one.
  for (let index = 0; index < plan.sessions; index++) {
    workers.push(spawn());
    opened.push(await workers[index]({ step: 'open', control }));
  }
  const first = await workers[0]({ step: 'firstResults', control });
  for (const ask of workers) await ask({ step: 'warmUp', control });
  const zero = host.sharedNs();
  /** @type {Served[]} */
  const parts = await Promise.all(workers.map((ask) => ask({ step: 'serve', control, zero })));
  await host.snapshot();
  const served = parts.flatMap(({ request, start, end }) =>
    request.map((number, index) => [number, start[index], end[index]]),
  );
  served.sort(([one], [other]) => one - other);
  const times = served.flatMap(([, start, end]) => [start, end]);
  await host.write(plan.one(ROLE.out), 'times.bin', int64(times), 'w');
  const [requests] = plan.one(ROLE.arrivals).shape;
  const stop_reason = served.length === requests ? 'all-served' : 'time-limit';
  return { ...opened[0], ...first, stop_reason };
}

/**
 * Return one worker of a load: it does each step when it is told to.
 * @param {Host} host
 * @param {() => unknown} [yieldCore] lets others have the core; a page has nothing that does
 * @returns {Ask}
 */
export function loadWorker(host, yieldCore = () => {}) {
  /** @type {Ready} */
  let ready;
  return async ({ step, control, zero = 0 }) => {
    try {
      if (step === 'open') {
        ready = await open(host);
        return ready.engine.facts;
      }
      if (step === 'firstResults') return await firstResults(ready.engine, ready.feed, host);
      if (step === 'warmUp') return await warmUp(ready.engine, ready.batches, host.plan);
      return await serve(ready, host, new Int32Array(control), zero, yieldCore);
    } catch (thrown) {
      // The others need not go on.
      Atomics.store(new Int32Array(control), FAULT, 1);
      throw thrown;
    }
  };
}

/** @param {Host} host */
async function open(host) {
  const { plan } = host;
  const bytes = await host.read(plan.one(ROLE.arrivals));
  // Exact up to 104 days.
  const arrivals = Float64Array.from(new BigInt64Array(bytes.buffer), Number);
  const feed = await feedOf(host);
  const engine = await openEngine(host);
  return { arrivals, feed, engine, batches: fullBatches(feed, plan.batch) };
}

/**
 * Take requests in their order until there is none, or the time is up.
 * @param {Ready} ready
 * @param {Host} host
 * @param {Int32Array} shared
 * @param {number} zero
 * @param {() => unknown} yieldCore
 * @returns {Promise<Served>}
 */
async function serve({ engine, batches, arrivals }, host, shared, zero, yieldCore) {
  const limitNs = host.plan.lastBeginNs;
  const clock = () => host.sharedNs();
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
