/** Mode `train` of the runner contract, in a worker of the page. */

import { runTraining } from '../../javascript/common/train/loop.mjs';
import { readState } from '../../javascript/common/train/state.mjs';
import { bytesOf, told } from './driver.mjs';
import { WebHost } from './web_host.mjs';

/** @import { Feed } from '../../javascript/common/types.mjs' */
/** @import { Manifest } from '../../javascript/common/train/types.mjs' */
/** @import { Done, Job, TrainJob } from '../wire.mjs' */

// What WebGPU keeps of a state; the others, which are scalars, come back with each run.
const ON_DEVICE = ['float32', 'float16'];

/**
 * @param {Job} job
 * @param {Feed} data
 * @returns {Promise<Done>}
 */
export async function train(job, data) {
  const { graphs, seed, ...given } = /** @type {TrainJob} */ (job.train);
  const { manifest, until, accumulate, batch } = given;
  const host = await WebHost.make(job);
  const rows = new BigInt64Array((await bytesOf('order')).buffer, 0, until * accumulate * batch);
  const training = {
    ...{ ...given, data, seed: BigInt(seed) },
    order: Float64Array.from(rows, Number),
    state: readState(await bytesOf('state'), manifest, 'state'),
  };
  const { record, diverged } = await runTraining(training, {
    open: (name) => {
      const { outputs } = manifest.graphs[name] ?? { outputs: [] };
      const stay = job.provider === 'webgpu' ? onDevice(manifest, outputs) : undefined;
      return host.openFile(name, graphs[name], false, stay);
    },
    // Tensors that are given for outputs would be copied to WebAssembly, and not back.
    writesInto: false,
    runIncludes: ['bind', 'read'],
    save: told.checkpoint,
  });
  await told.measured();
  return { record: { ...record, ...(await host.facts()) }, diverged };
}

/**
 * @param {Manifest} manifest
 * @param {string[]} outputs of the graph
 * @returns {Record<string, 'gpu-buffer'>}
 */
function onDevice({ state }, outputs) {
  const kept = state.filter(
    ({ next, dtype, shape }) =>
      outputs.includes(next ?? '') && ON_DEVICE.includes(dtype) && !shape.includes(0),
  );
  return Object.fromEntries(kept.map(({ next }) => [next, 'gpu-buffer']));
}
