/** Mode `train` of the runner contract: steps in order, what they took, and checkpoints. */

/** @import { Opened } from '../types.mjs' */
/** @import { Progress, Trained, Training } from './types.mjs' */

import { Feeder } from './feeder.mjs';
import { notFinite, stepOf, writeState } from './state.mjs';
import { Trainer } from './trainer.mjs';

/**
 * @typedef {object} Host where the steps run, and where their checkpoints go
 * @property {(graph: 'step' | 'accumulate') => Promise<Opened>} open
 * @property {string[]} runIncludes `bind` and `read`, where the runtime does them inside of `run`
 * @property {(pieces: Uint8Array<ArrayBuffer>[]) => unknown} save a state's file
 *
 * @typedef {'gather' | 'bind' | 'run' | 'read'} Part
 * @typedef {{metrics: number[], times: Record<Part, number>}} Step means, and milliseconds
 */

const WHY = 'the rate is too high, or the target has a class that the model does not';

/** @type {Part[]} */
const PARTS = ['gather', 'bind', 'run', 'read'];

/**
 * Train; return the record's fields.
 * @param {Training} training
 * @param {Host} host
 * @returns {Promise<Trained>}
 */
export async function runTraining(training, host) {
  const opened = await host.open('step');
  const more = training.accumulate > 1 ? await host.open('accumulate') : null;
  const trainer = new Trainer(training.manifest, training.state, {
    graphs: { step: opened.session, ...(more && { accumulate: more.session }) },
    TensorClass: opened.TensorClass,
  });
  const run = new Run(training, trainer, host);
  const diverged = await run.toEnd();
  const session_ns = opened.sessionNs + (more?.sessionNs ?? 0);
  const facts = { ...opened.facts, run_includes: host.runIncludes, session_ns };
  return { record: { ...facts, ...run.progress }, diverged: diverged && `diverged: ${diverged}` };
}

/** The steps from the state's own to the last. */
class Run {
  #training;
  #trainer;
  #feeder;
  #host;
  /** What the record says of the steps so far. @type {Progress} */
  progress;

  /**
   * @param {Training} training
   * @param {Trainer} trainer
   * @param {Host} host
   */
  constructor(training, trainer, host) {
    this.#training = training;
    this.#trainer = trainer;
    this.#feeder = new Feeder(training, trainer);
    this.#host = host;
    const { manifest, state } = training;
    this.progress = {
      first_step: stepOf(state, manifest),
      losses: [],
      metrics: Object.fromEntries(manifest.metrics.slice(1).map(({ name }) => [name, []])),
      ...{ gather_ns: [], bind_ns: [], run_ns: [], read_ns: [] },
      checkpoints: [],
    };
  }

  /** Return null, or how it diverged. */
  async toEnd() {
    const { until, checkpointEvery } = this.#training;
    const { first_step: first } = this.progress;
    for (let step = first; step < until; step++) {
      const done = await this.#step(step);
      const [loss] = done.metrics;
      if (!Number.isFinite(loss)) return `the loss of step ${step} is ${loss}: ${WHY}`;
      const isDue = checkpointEvery > 0 && (step + 1) % checkpointEvery === 0;
      const bad = isDue || step + 1 === until ? await this.#save(step + 1) : undefined;
      if (bad !== undefined) return `after step ${step} '${bad}' is not finite`;
      this.#note(done);
    }
    // Where nothing is left to do, the checkpoint may not be there yet.
    if (first === until) await this.#save(until);
    return null;
  }

  /**
   * Write a checkpoint; return the name of what is not finite, and then nothing is written.
   * @param {number} step
   */
  async #save(step) {
    const begin = performance.now();
    const { manifest } = this.#training;
    const { state } = this.#trainer;
    const bad = notFinite(state, manifest);
    if (bad !== undefined) return bad;
    await this.#host.save(writeState(state, manifest));
    this.progress.checkpoints.push({ step, ns: nanoseconds(performance.now() - begin) });
    return undefined;
  }

  /** @param {Step} done */
  #note({ metrics, times }) {
    const { losses, metrics: others } = this.progress;
    losses.push(metrics[0]);
    this.#training.manifest.metrics.forEach(({ name }, index) =>
      others[name]?.push(metrics[index]),
    );
    for (const part of PARTS) this.progress[`${part}_ns`].push(nanoseconds(times[part]));
  }

  /**
   * @param {number} step
   * @returns {Promise<Step>}
   */
  async #step(step) {
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
   * Run a micro-batch; return its metrics.
   * @param {number} step
   * @param {number} micro
   * @param {Step['times']} times are added to
   */
  async #micro(step, micro, times) {
    const { accumulate, manifest } = this.#training;
    const { runIncludes } = this.#host;
    const graph = micro + 1 < accumulate ? 'accumulate' : 'step';
    const t0 = performance.now();
    this.#feeder.gather(step * accumulate + micro);
    const t1 = performance.now();
    this.#feeder.setHyper(step);
    const feed = this.#trainer.feedOf(graph, this.#feeder.tensors);
    const t2 = runIncludes.includes('bind') ? t1 : performance.now();
    const outputs = await this.#trainer.run(feed);
    const t3 = performance.now();
    const values = manifest.metrics.map(({ name }) => Number(outputs[name].data[0]));
    const t4 = runIncludes.includes('read') ? t3 : performance.now();
    times.gather += t1 - t0;
    times.bind += t2 - t1;
    times.run += t3 - t2;
    times.read += t4 - t3;
    return values;
  }
}

/** @param {number} milliseconds */
function nanoseconds(milliseconds) {
  return Math.round(milliseconds * 1e6);
}
