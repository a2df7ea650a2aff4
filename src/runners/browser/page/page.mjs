/** The page: has its workers do what the driver asks for. */

import { Crash, unpack } from '../../javascript/common/faults.mjs';
import { gather } from '../../javascript/common/serve.mjs';
import { holdLine, nextJob, told } from './driver.mjs';

/** @import { Served } from '../../javascript/common/types.mjs' */
/** @import { Job, Done } from '../wire.mjs' */
/** @import { Answer, Ready } from './worker.mjs' */

function newWorker() {
  return new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
}

/**
 * Give a worker something to do; return what it says at its end. Raises its fault.
 * @param {Worker} worker
 * @param {object} message
 * @returns {Promise<any>}
 */
function ask(worker, message) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      const answer = /** @type {Answer} */ (data);
      if ('fault' in answer) reject(unpack(answer.fault));
      else resolve(answer.value);
    };
    worker.onerror = (event) => reject(new Crash(`a worker broke: ${event.message}`));
    worker.postMessage(message);
  });
}

/**
 * Mode `load`: a worker a session, each with an instance of WebAssembly of its own.
 * @param {Job} job
 * @returns {Promise<Done>}
 */
async function load(job) {
  const { sessions, arrivals, limitNs } = job;
  const queue = {
    control: new SharedArrayBuffer(8),
    arrivals: Float64Array.from(arrivals),
    limitNs,
  };
  const epoch = performance.timeOrigin;
  const workers = [];
  /** @type {Ready[]} */
  const ready = [];
  for (let index = 0; index < sessions; index++) {
    const worker = newWorker();
    workers.push(worker);
    ready.push(await ask(worker, { job, queue, epoch }));
  }
  // Each step on all sessions before the next one.
  await ask(workers[0], { step: 'all rows' });
  for (const worker of workers) await ask(worker, { step: 'warm up' });
  const serve = { step: 'serve', zero: performance.now() * 1e6 };
  const served = await Promise.all(workers.map((worker) => ask(worker, serve)));
  await told.measured();
  const { facts, sessionNs } = ready[0];
  const counted = gather(/** @type {Served[]} */ (served), arrivals.length);
  return { record: { ...facts, session_ns: sessionNs, sessions, ...counted } };
}

/** Do all jobs, one after another, until the driver ends this page. */
async function work() {
  const worker = newWorker();
  for (;;) {
    const job = await nextJob();
    try {
      if (!crossOriginIsolated) throw new Crash('the page is not cross-origin isolated');
      await told.done(job.mode === 'load' ? await load(job) : await ask(worker, { job }));
    } catch (thrown) {
      await told.fault(thrown);
    }
  }
}

const line = holdLine();
// What cannot be told must not be waited for: the driver hears the line go dead.
work().catch(() => line.abort());
