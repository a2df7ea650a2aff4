/** A worker of the page: one instance of ONNX Runtime, whatever it is asked to do. */

import { fullBatches } from '../../javascript/common/batches.mjs';
import { Engine } from '../../javascript/common/engine.mjs';
import { Unsupported, pack } from '../../javascript/common/faults.mjs';
import { firstResults, runLatency } from '../../javascript/common/latency.mjs';
import { FAULT, serve, warmUp } from '../../javascript/common/serve.mjs';
import { decode } from '../../javascript/common/tensors.mjs';
import { listen, tellLog } from './console.mjs';
import { bytesOf, told } from './driver.mjs';
import { train } from './train.mjs';
import { WebHost } from './web_host.mjs';

/** @import { Facts, Queue } from '../../javascript/common/types.mjs' */
/** @import { Done, Job } from '../wire.mjs' */

/**
 * @typedef {{facts: Facts, sessionNs: number}} Ready
 * @typedef {{value: unknown} | {fault: {kind: string, message: string}}} Answer
 */

/** @type {Record<string, (zero: number) => Promise<unknown>>} */
let steps = {};

/** @param {Job} job */
function feedOf({ inputs }) {
  return Promise.all(
    inputs.map(async (tensor, index) => {
      const name = `input-${index}`;
      return { ...tensor, data: decode(tensor, await bytesOf(name), name) };
    }),
  );
}

/**
 * @param {Job} job
 * @returns {Promise<Done>}
 */
async function latency(job) {
  const host = await WebHost.make(job);
  const { batch, limits, profile } = job;
  const record = await runLatency(host, { feed: await feedOf(job), batch, limits, profile }, told);
  return { record: { ...record, ...(await host.facts()) }, profile: host.profile };
}

/**
 * @param {Job} job
 * @returns {Promise<Done>}
 */
async function oneCase(job) {
  const host = await WebHost.make(job);
  const engine = new Engine(await host.open(false));
  try {
    if (engine.notTensors.length) {
      throw new Unsupported(
        `outputs [${engine.notTensors}] are no tensors, and onnxruntime-web gives no other values`,
      );
    }
    const feed = await feedOf(job);
    engine.check(feed, job.batch);
    await engine.allRows(feed, job.batch, told.outputs);
  } finally {
    await engine.close();
  }
  return { record: {} };
}

/**
 * Mode `load`: open a session; the steps that follow are asked for one by one.
 * @param {Job} job
 * @param {Queue} queue
 * @param {number} epoch the page's time origin, in milliseconds
 * @returns {Promise<Ready>}
 */
async function open(job, queue, epoch) {
  const host = await WebHost.make(job);
  const feed = await feedOf(job);
  const engine = new Engine(await host.open(false));
  const { batch, limits } = job;
  engine.check(feed, batch);
  const batches = fullBatches(feed, batch);
  // The page's clock. Apart from its origin: since 1970 it is too many nanoseconds for a number.
  const ahead = performance.timeOrigin - epoch;
  const clock = () => (ahead + performance.now()) * 1e6;
  steps = {
    'all rows': () => firstResults(engine, feed, batch, told),
    'warm up': () => warmUp(engine, batches, limits.warmup),
    serve: (zero) => serve(engine, batches, queue, clock, zero),
  };
  return { facts: { ...engine.facts, ...(await host.facts()) }, sessionNs: engine.sessionNs };
}

/**
 * @param {{job?: Job, queue?: Queue, epoch?: number, step?: string, zero?: number}} message
 * @returns {Promise<unknown>}
 */
function work({ job, queue, epoch = 0, step = '', zero = 0 }) {
  if (!job) return steps[step](zero);
  if (queue) return open(job, queue, epoch);
  if (job.mode === 'train') return feedOf(job).then((data) => train(job, data));
  return job.mode === 'case' ? oneCase(job) : latency(job);
}

/** @type {Queue | undefined} */
let shared;

listen();
onmessage = async ({ data }) => {
  shared ??= data.queue;
  /** @type {Answer} */
  let answer;
  try {
    answer = { value: await work(data) };
  } catch (thrown) {
    // The other workers of mode `load` need not go on.
    if (shared) Atomics.store(new Int32Array(shared.control), FAULT, 1);
    answer = { fault: pack(thrown) };
  }
  // A log that does not arrive must not keep the answer.
  await tellLog().catch(() => {});
  postMessage(answer);
};
