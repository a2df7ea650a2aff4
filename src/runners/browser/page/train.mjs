/** Mode `train` of the runner contract, in a worker of the page. */

import { runTraining } from '../../javascript/common/train/loop.mjs';
import { readState } from '../../javascript/common/train/state.mjs';
import { bytesOf, told } from './driver.mjs';
import { WebHost } from './web_host.mjs';

/** @import { Feed } from '../../javascript/common/types.mjs' */
/** @import { Done, Job, TrainJob } from '../wire.mjs' */

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
    open: (name) => host.openFile(name, graphs[name], false),
    runIncludes: ['bind', 'read'],
    save: told.checkpoint,
  });
  await told.measured();
  return { record: { ...record, ...(await host.facts()) }, diverged };
}
