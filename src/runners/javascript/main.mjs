/** ONNX Runtime from Node.js, under the runner contract (docs/runner-contract.md). */

import { Worker } from 'node:worker_threads';

import { Fault } from './faults.mjs';
import { load } from './load.mjs';
import { cases, latency } from './measure.mjs';
import { NodeHost, preload } from './node_host.mjs';
import { LEVEL, ROLE } from './plan.mjs';
import { runProgram } from './result.mjs';
import { train } from './train.mjs';

/** @import { Ask } from './load.mjs' */
/** @import { Result } from './result.mjs' */

/** @param {Result} result */
async function work({ plan }) {
  const options = plan.all(ROLE.providerOption);
  // The binding cannot set this provider option; the libraries below it read a variable.
  if (options.some(({ name, text }) => name === 'use_tf32' && text === '0')) {
    process.env.NVIDIA_TF32_OVERRIDE = '0';
  }
  const library = plan.text(ROLE.library);
  if (library !== undefined) preload(library);
  const host = await NodeHost.make(plan);
  let facts;
  if (plan.level === LEVEL.load) facts = await load(host, spawn);
  else if (plan.level === LEVEL.cases) facts = await cases(host);
  else if (plan.level === LEVEL.train) facts = await train(host);
  else facts = await latency(host);
  return { ...facts, ...host.facts() };
}

/** @returns {Ask} */
function spawn() {
  const worker = new Worker(new URL('./load_worker.mjs', import.meta.url), {
    argv: process.argv.slice(2),
  });
  return (order) =>
    new Promise((resolve, reject) => {
      worker.removeAllListeners();
      worker.on('error', reject);
      worker.on('message', ({ value, fault }) => {
        if (fault) reject(new Fault(fault.kind, fault.message));
        else resolve(value);
      });
      worker.postMessage(order);
    });
}

process.exit(await runProgram('javascript', work));
