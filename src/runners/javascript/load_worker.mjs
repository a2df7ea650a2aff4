/** A worker thread of level `load`: does each step when it is told to. */

import { readFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';

import koffi from 'koffi';

import { pack } from './faults.mjs';
import { loadWorker } from './load.mjs';
import { NodeHost } from './node_host.mjs';
import { Plan } from './plan.mjs';

/** @import { Ask, Order } from './load.mjs' */

/** @type {() => number} */
const schedYield = koffi.load('libc.so.6').func('int sched_yield()');
const plan = new Plan(readFileSync(process.argv[2]));
/** @type {Ask | null} */
let work = null;

parentPort?.on('message', async (/** @type {Order} */ order) => {
  try {
    work ??= loadWorker(await NodeHost.make(plan), schedYield);
    parentPort?.postMessage({ value: await work(order) });
  } catch (thrown) {
    parentPort?.postMessage({ fault: pack(thrown) });
  }
});
