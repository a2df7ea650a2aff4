/** One worker of mode `load`: does each step when it is told to. */

import { parentPort, workerData } from 'node:worker_threads';

import koffi from 'koffi';
import ort from 'onnxruntime-node';

import { monotonicNs } from './clock.mjs';
import { fullBatches } from './common/batches.mjs';
import { Engine } from './common/engine.mjs';
import { pack } from './common/faults.mjs';
import { firstResults } from './common/latency.mjs';
import { FAULT, serve, warmUp } from './common/serve.mjs';
import { makeEnvironment, openSession } from './session.mjs';

/** @import { MessagePort } from 'node:worker_threads' */
/** @import { Feed, Options, Output, Queue } from './common/types.mjs' */

/**
 * @typedef {object} Job
 * @property {string} model
 * @property {string} provider
 * @property {Options} options
 * @property {Feed} feed a copy: the binding takes no memory that is shared between threads
 * @property {number | null} batch
 * @property {number} warmup
 * @property {Queue} queue
 *
 * @typedef {{step: 'open' | 'all rows' | 'warm up'} | {step: 'serve', zero: number}} Order
 */

const job = /** @type {Job} */ (workerData);
const port = /** @type {MessagePort} */ (parentPort);
/** @type {() => number} */
const schedYield = koffi.load('libc.so.6').func('int sched_yield()');
const batches = fullBatches(job.feed, job.batch);
/** @type {Engine} */
let engine;

async function open() {
  await makeEnvironment(ort);
  engine = new Engine(await openSession(ort, job.model, job.provider, job.options, null));
  engine.check(job.feed, job.batch);
  return { facts: engine.facts, sessionNs: engine.sessionNs };
}

/** Hand on the outputs as they come; return when the first result was there. */
async function allRows() {
  let firstResultNs = 0;
  await firstResults(engine, job.feed, job.batch, {
    firstResult: () => (firstResultNs = Number(process.hrtime.bigint())),
    outputs: (/** @type {Output[]} */ outputs) => port.postMessage({ outputs }),
  });
  return firstResultNs;
}

/**
 * @param {Order} order
 * @returns {Promise<unknown>}
 */
function work(order) {
  switch (order.step) {
    case 'open':
      return open();
    case 'all rows':
      return allRows();
    case 'warm up':
      return warmUp(engine, batches, job.warmup);
    case 'serve':
      return serve(engine, batches, job.queue, monotonicNs, order.zero, schedYield);
  }
}

port.on('message', async (/** @type {Order} */ order) => {
  try {
    port.postMessage({ value: await work(order) });
  } catch (thrown) {
    // The others need not go on.
    Atomics.store(new Int32Array(job.queue.control), FAULT, 1);
    port.postMessage({ fault: pack(thrown) });
  }
});
