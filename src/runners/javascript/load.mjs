/** Mode `load` of the runner contract in Node: worker threads, each with its own session. */

import { on } from 'node:events';
import { Worker } from 'node:worker_threads';

import { monotonicNs } from './clock.mjs';
import { unpack } from './common/faults.mjs';
import { gather } from './common/serve.mjs';

/** @import { Facts, Feed, Options, Output, Queue, Served } from './common/types.mjs' */
/** @import { Given } from './driver/arguments.mjs' */
/** @import { Write } from './driver/program.mjs' */
/** @import { Order } from './load_worker.mjs' */

/**
 * @typedef {{outputs: Output[]}} Part
 * @typedef {{fault: {kind: string, message: string}}} Fault
 * @typedef {{facts: Facts, sessionNs: number}} Session what 'open' says at its end
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
    // One after another, as the contract orders it: each step on all sessions before the next one.
    /** @type {Session[]} */
    const opened = [];
    for (let index = 0; index < sessions; index++) {
      const worker = new Worker(new URL('./load_worker.mjs', import.meta.url), { workerData: job });
      workers.push(worker);
      opened.push(await ask(worker, { step: 'open' }, write));
    }
    /** @type {number} */
    const firstResultNs = await ask(workers[0], { step: 'all rows' }, write);
    for (const worker of workers) await ask(worker, { step: 'warm up' }, write);
    /** @type {Order} */
    const serve = { step: 'serve', zero: monotonicNs() };
    const served = await Promise.all(workers.map((worker) => ask(worker, serve, write)));
    return {
      ...opened[0].facts,
      session_ns: opened[0].sessionNs,
      first_result_ns: firstResultNs,
      sessions,
      ...gather(/** @type {Served[]} */ (served), arrivals.length),
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * Have a worker do a step; return what it says at its end. Raises its fault.
 * @param {Worker} worker
 * @param {Order} order
 * @param {Write} write
 * @returns {Promise<any>}
 */
async function ask(worker, order, write) {
  const said = on(worker, 'message');
  worker.postMessage(order);
  for await (const [message] of said) {
    const told = /** @type {Part | Fault | {value: unknown}} */ (message);
    if ('fault' in told) throw unpack(told.fault);
    if ('value' in told) return told.value;
    write(told.outputs);
  }
  return undefined;
}
