/** A worker of the page: one instance of ONNX Runtime, whatever it is asked to do. */

import { pack } from '../../javascript/faults.mjs';
import { loadWorker } from '../../javascript/load.mjs';
import { cases, latency } from '../../javascript/measure.mjs';
import { LEVEL } from '../../javascript/plan.mjs';
import { train } from '../../javascript/train.mjs';
import { listen, tellLog } from './console.mjs';
import { readPlan } from './driver.mjs';
import { WebHost } from './web_host.mjs';

/** @import { Ask, Order } from '../../javascript/load.mjs' */

/** @type {Ask | null} */
let load = null;

/**
 * A step of level `load`, or all of another one.
 * @param {Order & {epoch: number}} order
 */
async function work(order) {
  if (load) return load(order);
  const plan = await readPlan();
  const host = await WebHost.make(plan, order.epoch);
  const facts = await host.facts();
  if (plan.level === LEVEL.train) return { ...(await train(host)), ...facts };
  if (plan.level === LEVEL.cases) return { ...(await cases(host)), ...facts };
  if (plan.level === LEVEL.latency) return { ...(await latency(host)), ...facts };
  load = loadWorker(host);
  return { ...(await load(order)), ...facts };
}

listen();
onmessage = async ({ data }) => {
  let answer;
  try {
    answer = { value: await work(data) };
  } catch (thrown) {
    answer = { fault: pack(thrown) };
  }
  // A log that does not arrive must not keep the answer.
  await tellLog().catch(() => {});
  postMessage(answer);
};
