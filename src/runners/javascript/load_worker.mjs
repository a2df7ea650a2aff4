/** One worker of mode `load`: says when it is ready, serves when it is told to. */

import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';

import ort from 'onnxruntime-node';

import { monotonicNs } from './clock.mjs';
import { fullBatches } from './common/batches.mjs';
import { Engine } from './common/engine.mjs';
import { pack } from './common/faults.mjs';
import { FAULT, prepare, serve } from './common/serve.mjs';
import { makeEnvironment, openSession } from './session.mjs';

/** @import { MessagePort } from 'node:worker_threads' */
/** @import { Feed, Options, Queue } from './common/types.mjs' */

/**
 * @typedef {object} Job
 * @property {string} model
 * @property {string} provider
 * @property {Options} options
 * @property {Feed} feed
 * @property {number | null} batch
 * @property {number} warmup
 * @property {Queue} queue
 * @property {boolean} isFirst
 */

/**
 * @param {Job} job
 * @param {MessagePort} port
 */
async function work({ model, provider, options, feed, batch, warmup, queue, isFirst }, port) {
  await makeEnvironment(ort);
  const engine = new Engine(await openSession(ort, model, provider, options, null));
  let firstResultNs = 0;
  const note = () => (firstResultNs = Number(process.hrtime.bigint()));
  const outputs = await prepare(engine, feed, batch, warmup, isFirst ? note : null);
  port.postMessage({ facts: engine.facts, sessionNs: engine.sessionNs, firstResultNs, outputs });
  const [{ zero }] = await once(port, 'message');
  port.postMessage(await serve(engine, fullBatches(feed, batch), queue, monotonicNs, zero));
}

const job = /** @type {Job} */ (workerData);
const port = /** @type {MessagePort} */ (parentPort);
try {
  await work(job, port);
} catch (thrown) {
  // The others need not go on.
  Atomics.store(new Int32Array(job.queue.control), FAULT, 1);
  port.postMessage({ fault: pack(thrown) });
}
