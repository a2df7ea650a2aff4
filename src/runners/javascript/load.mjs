/** Mode `load` of the runner contract in Node: worker threads, each with its own session. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

import { monotonicNs } from './clock.mjs';
import { unpack } from './common/faults.mjs';
import { gather } from './common/serve.mjs';

/** @import { Facts, Feed, Options, Output, Queue, Served } from './common/types.mjs' */
/** @import { Given } from './driver/arguments.mjs' */
/** @import { Write } from './driver/program.mjs' */

/**
 * @typedef {{facts: Facts, sessionNs: number}} Session
 * @typedef {Session & {firstResultNs: number, outputs: Output[] | null}} Ready
 * @typedef {{fault: {kind: string, message: string}}} Fault
 */

/**
 * Serve the arrivals with some sessions at once; return the record's fields.
 * @param {Given} given
 * @param {Options} options
 * @param {Feed} feed
 * @param {number | null} batch
 * @param {Float64Array} arrivals
 * @param {Write} write
 */
export async function runLoad(given, options, feed, batch, arrivals, write) {
  const { model, provider, sessions, limits } = given;
  /** @type {Queue} */
  const queue = {
    control: new SharedArrayBuffer(8),
    arrivals,
    limitNs: 2 * arrivals[arrivals.length - 1] + limits.maxSeconds * 1e9,
  };
  const job = { model, provider, options, feed, batch, warmup: limits.warmup, queue };
  /** @type {Worker[]} */
  const workers = [];
  try {
    // One after another, as the contract orders it: all rows on the first session, before the next.
    /** @type {Ready[]} */
    const ready = [];
    for (let index = 0; index < sessions; index++) {
      const workerData = { ...job, isFirst: index === 0 };
      const worker = new Worker(new URL('./load_worker.mjs', import.meta.url), { workerData });
      workers.push(worker);
      ready.push(/** @type {Ready} */ (await answer(worker)));
    }
    const [first] = ready;
    write(first.outputs ?? []);
    const zero = monotonicNs();
    for (const worker of workers) worker.postMessage({ zero });
    const served = /** @type {Served[]} */ (await Promise.all(workers.map(answer)));
    return {
      ...first.facts,
      session_ns: first.sessionNs,
      first_result_ns: first.firstResultNs,
      sessions,
      ...gather(served, arrivals.length),
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * Return what a worker says next. Raises its fault.
 * @param {Worker} worker
 * @returns {Promise<Ready | Served>}
 */
async function answer(worker) {
  const [message] = /** @type {[Ready | Served | Fault]} */ (await once(worker, 'message'));
  if ('fault' in message) throw unpack(message.fault);
  return message;
}
