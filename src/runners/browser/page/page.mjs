/** The page: has its workers do what the plan says. */

import { Fault, pack } from '../../javascript/faults.mjs';
import { load } from '../../javascript/load.mjs';
import { LEVEL } from '../../javascript/plan.mjs';
import { Driver, holdLine, readPlan, tell } from './driver.mjs';

/** Return what gives a new worker something to do, and raises its fault. */
function spawn() {
  const worker = new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
  return (/** @type {object} */ order) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data: { value, fault } }) => {
        if (fault) reject(new Fault(fault.kind, fault.message));
        else resolve(value);
      };
      worker.onerror = (event) => reject(new Fault('crash', `a worker broke: ${event.message}`));
      worker.postMessage({ ...order, epoch: performance.timeOrigin });
    });
}

async function work() {
  const plan = await readPlan();
  try {
    if (!crossOriginIsolated) throw new Fault('crash', 'the page is not cross-origin isolated');
    const driver = new Driver(plan, performance.timeOrigin);
    const facts = plan.level === LEVEL.load ? await load(driver, spawn) : await spawn()({});
    await tell('end', JSON.stringify(facts));
  } catch (thrown) {
    await tell('fault', JSON.stringify(pack(thrown)));
  }
}

const line = holdLine();
// What cannot be told must not be waited for: the driver hears the line go dead.
work().catch(() => line.abort());
