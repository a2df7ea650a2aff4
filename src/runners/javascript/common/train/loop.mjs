/** Mode `train` of the runner contract: steps in order, what they took, and checkpoints. */

/** @import { Opened } from '../types.mjs' */
/** @import { Progress, Trained, Training } from './types.mjs' */

import { Feeder } from './feeder.mjs';
import { notFinite, stepOf, writeState } from './state.mjs';
import { Trainer } from './trainer.mjs';

/**
 * @typedef {object} Host where the steps run, and where their checkpoints go
 * @property {(graph: 'step' | 'accumulate') => Promise<Opened>} open
 * @property {boolean} writesInto see Sessions of trainer.mjs
 * @property {string[]} runIncludes `bind` and `read`, where the runtime does them inside of `run`
 * @property {(pieces: Uint8Array<ArrayBuffer>[]) => unknown} save a state's file
 *
 * @typedef {'gather' | 'bind' | 'run' | 'read'} Part
 * @typedef {{metrics: number[], times: Record<Part, number>}} Step means, and milliseconds
 */

/**
 * Train; return the record's fields.
 * @param {Training} training
 * @param {Host} host
 * @returns {Promise<Trained>}
 */
export async function runTraining(training, host) {
  const { manifest, accumulate, until, checkpointEvery } = training;
  const opened = await host.open('step');
  const more = accumulate > 1 ? await host.open('accumulate') : null;
  const trainer = new Trainer(manifest, training.state, {
    graphs: { step: opened.session, ...(more && { accumulate: more.session }) },
    TensorClass: opened.TensorClass,
    writesInto: host.writesInto,
  });
  const first = stepOf(training.state, manifest);
  const steps = new Steps(training, trainer, host.runIncludes);
  const progress = emptyProgress(first, training);
  const session_ns = opened.sessionNs + (more?.sessionNs ?? 0);
  const facts = { ...opened.facts, run_includes: host.runIncludes, session_ns };
  const end = (/** @type {string | null} */ diverged) => ({
    record: { ...facts, ...progress },
    diverged: diverged && `diverged: ${diverged}`,
  });
  /** Write a checkpoint; return what is not finite, and then nothing is written. */
  const save = async (/** @type {number} */ step) => {
    const begin = performance.now();
    const state = await trainer.state();
    const bad = notFinite(state, manifest);
    if (bad !== undefined) return bad;
    await host.save(writeState(state, manifest));
    progress.checkpoints.push({ step, ns: nanoseconds(performance.now() - begin) });
    return undefined;
  };
  for (let step = first; step < until; step++) {
    const done = await steps.run(step);
    const [loss] = done.metrics;
    if (!Number.isFinite(loss)) return end(`the loss of step ${step} is ${loss}`);
    const isDue = checkpointEvery > 0 && (step + 1) % checkpointEvery === 0;
    const bad = isDue || step + 1 === until ? await save(step + 1) : undefined;
    if (bad !== undefined) return end(`after step ${step} '${bad}' is not finite`);
    note(progress, done, manifest);
  }
  // Nothing is left to do, and the checkpoint is there.
  if (first === until) await save(until);
  return end(null);
}

/** Steps, each of some micro-batches. */
class Steps {
  #training;
  #trainer;
  #feeder;
  #includes;

  /**
   * @param {Training} training
   * @param {Trainer} trainer
   * @param {string[]} includes parts that are not timed apart from `run`
   */
  constructor(training, trainer, includes) {
    this.#training = training;
    this.#trainer = trainer;
    this.#feeder = new Feeder(training, trainer);
    this.#includes = includes;
  }

  /**
   * @param {number} step
   * @returns {Promise<Step>}
   */
  async run(step) {
    const { accumulate, manifest } = this.#training;
    const times = { gather: 0, bind: 0, run: 0, read: 0 };
    const metrics = manifest.metrics.map(() => 0);
    for (let micro = 0; micro < accumulate; micro++) {
      const values = await this.#micro(step, micro, times);
      values.forEach((value, index) => (metrics[index] += value));
    }
    return { metrics: metrics.map((sum) => sum / accumulate), times };
  }

  /**
   * @param {number} step
   * @param {number} micro
   * @param {Step['times']} times
   */
  async #micro(step, micro, times) {
    const { accumulate, manifest } = this.#training;
    const t0 = performance.now();
    this.#feeder.gather(step * accumulate + micro);
    const t1 = performance.now();
    this.#feeder.setHyper(step);
    const feed = this.#trainer.feedOf(micro + 1 < accumulate ? 'accumulate' : 'step', this.#feeder.tensors);
    const t2 = this.#includes.includes('bind') ? t1 : performance.now();
    const outputs = await this.#trainer.run(feed);
    const t3 = performance.now();
    const values = [];
    for (const { name } of manifest.metrics) values.push(Number((await outputs[name].getData())[0]));
    const t4 = this.#includes.includes('read') ? t3 : performance.now();
    times.gather += t1 - t0;
    times.bind += t2 - t1;
    times.run += t3 - t2;
    times.read += t4 - t3;
    return values;
  }
}

/**
 * @param {number} first
 * @param {Training} training
 * @returns {Progress}
 */
function emptyProgress(first, { manifest }) {
  const others = manifest.metrics.slice(1).map(({ name }) => [name, []]);
  return {
    first_step: first,
    losses: [],
    metrics: Object.fromEntries(others),
    gather_ns: [],
    bind_ns: [],
    run_ns: [],
    read_ns: [],
    checkpoints: [],
  };
}

/**
 * @param {Progress} progress
 * @param {Step} done
 * @param {Training['manifest']} manifest
 */
function note(progress, { metrics, times }, manifest) {
  progress.losses.push(metrics[0]);
  manifest.metrics.forEach(({ name }, index) => progress.metrics[name]?.push(metrics[index]));
  for (const part of /** @type {Part[]} */ (['gather', 'bind', 'run', 'read'])) {
    progress[`${part}_ns`].push(nanoseconds(times[part]));
  }
}

/** @param {number} milliseconds */
function nanoseconds(milliseconds) {
  return Math.round(milliseconds * 1e6);
}
