/** Level `train` of the runner contract. Node.js and the page have it. */

import { Fault, isTrap, wordsOf } from './faults.mjs';
import { int64 } from './measure.mjs';
import { ROLE, arrayOf, countOf, tensorOf } from './plan.mjs';
import { bytesOf, nanoseconds } from './session.mjs';

/** @import { InferenceSession, Tensor } from 'onnxruntime-common' */
/** @import { Plan } from './plan.mjs' */
/** @import { Bytes, Entry, Host, Numbers, Opened } from './types.mjs' */

/**
 * @typedef {object} Graph
 * @property {InferenceSession} session
 * @property {Entry[]} takes
 * @property {Entry[]} next what it gives of the state
 */

/**
 * Train; return what the last line says.
 * @param {Plan} plan
 * @param {Host} host
 */
export async function train(plan, host) {
  const files = plan.all(ROLE.graph);
  const opened = [];
  for (const file of files) opened.push(await host.open(file, false));
  const facts = opened[0].facts;
  // Metrics are read out of JavaScript's memory, into which outputs are copied inside of run.
  const run_includes = facts.run_includes.map((part) => (part === 'copy' ? 'read' : part));
  const run = new Training(plan, host, opened, run_includes);
  await run.prepare();
  await run.toEnd();
  await host.snapshot();
  await host.write(plan.one(ROLE.out), 'times.bin', int64(run.times), 'w');
  const metrics = new Uint8Array(Float64Array.from(run.metrics).buffer);
  await host.write(plan.one(ROLE.out), 'metrics.bin', metrics, 'w');
  const session_ns = opened.reduce((sum, { sessionNs }) => sum + sessionNs, 0);
  return { ...facts, run_includes, session_ns };
}

class Training {
  #plan;
  #host;
  #TensorClass;
  #metrics;
  #runIncludes;
  /** @type {Graph[]} */
  #graphs;
  /** What the next run takes, by the number of the entry. @type {Tensor[]} */
  #tensors = [];
  /** @type {{from: Numbers, into: Numbers, size: number}[]} */
  #copies = [];
  /** The number of each step, and where the next run reads it. */
  #hyper = /** @type {{values: Numbers, into: Float64Array}[]} */ ([]);
  #order = new Float64Array();
  #saved = 0;
  /** Gather, bind, run and read of each step, in nanoseconds. @type {number[]} */
  times = [];
  /** All metrics of each step. @type {number[]} */
  metrics = [];

  /**
   * @param {Plan} plan
   * @param {Host} host
   * @param {Opened[]} opened by the groups of the graphs
   * @param {string[]} runIncludes
   */
  constructor(plan, host, opened, runIncludes) {
    this.#plan = plan;
    this.#host = host;
    this.#runIncludes = runIncludes;
    this.#TensorClass = opened[0].TensorClass;
    this.#metrics = plan.all(ROLE.metric);
    this.#graphs = opened.map(({ session }, group) => ({
      session,
      takes: plan.all(ROLE.takes, group),
      next: plan
        .all(ROLE.gives, group)
        .filter(({ link }) => plan.entries[link].role === ROLE.state),
    }));
  }

  /** Read what the runs take, into memory that is the same for all of them. */
  async prepare() {
    const { batch, seed } = this.#plan;
    const read = async (/** @type {Entry} */ entry) =>
      /** @type {Numbers} */ (tensorOf(entry, await this.#host.read(entry)).data);
    for (const entry of this.#plan.all(ROLE.state)) {
      this.#hold(entry, arrayOf(entry)[0], await read(entry), entry.shape);
    }
    for (const entry of this.#plan.all(ROLE.data)) {
      const [dtype, Numbers] = arrayOf(entry);
      const size = countOf(entry.shape.slice(1));
      const into = new Numbers(batch * size);
      this.#copies.push({ from: await read(entry), into, size });
      this.#hold(entry, dtype, into, [batch, ...entry.shape.slice(1)]);
    }
    for (const entry of this.#plan.all(ROLE.hyper)) {
      const into = new Float64Array(1);
      this.#hyper.push({ values: await read(entry), into });
      this.#hold(entry, 'float64', into, []);
    }
    for (const entry of this.#plan.all(ROLE.seed)) {
      this.#hold(entry, 'int64', BigInt64Array.of(seed), []);
    }
    this.#order = Float64Array.from(await read(this.#plan.one(ROLE.order)), Number);
  }

  /**
   * @param {Entry} entry
   * @param {string} dtype
   * @param {Numbers} numbers are not copied
   * @param {number[]} shape
   */
  #hold({ index }, dtype, numbers, shape) {
    const type = /** @type {any} */ (dtype);
    this.#tensors[index] = new this.#TensorClass(type, /** @type {any} */ (numbers), shape);
  }

  /** Do the steps; a loss that is not finite ends them. */
  async toEnd() {
    const { firstStep, steps, checkpointEvery } = this.#plan;
    for (let step = 0; step < steps; step++) {
      if (!Number.isFinite(await this.#step(step))) return;
      const done = firstStep + step + 1;
      const isDue = checkpointEvery > 0 && done % checkpointEvery === 0;
      if (isDue && step + 1 < steps) await this.#save(done);
    }
    await this.#save(firstStep + steps);
  }

  /**
   * Write a checkpoint: the state's block, as the plan has it laid out.
   * @param {number} updates
   */
  async #save(updates) {
    const begin = performance.now();
    const slot = this.#saved++ % 2;
    /** @type {Bytes[]} */
    const pieces = [];
    let place = 0;
    for (const { index, offset } of this.#plan.all(ROLE.state)) {
      const bytes = bytesOf(this.#tensors[index]);
      pieces.push(new Uint8Array(offset - place), bytes);
      place = offset + bytes.length;
    }
    pieces.push(new Uint8Array(this.#plan.stateBytes - place));
    await this.#host.save(`state-${slot}.bin`, pieces);
    const ns = nanoseconds(performance.now() - begin);
    await this.#host.say({ checkpoint: updates, slot, ns });
  }

  /**
   * Do a step: keep its times and metrics, return its loss.
   * @param {number} step
   */
  async #step(step) {
    const { accumulate } = this.#plan;
    const times = { gather: 0, bind: 0, run: 0, read: 0 };
    const metrics = this.#metrics.map(() => 0);
    for (let micro = 0; micro < accumulate; micro++) {
      const values = await this.#micro(step, micro, times);
      values.forEach((value, index) => (metrics[index] += value));
    }
    this.times.push(...Object.values(times).map(nanoseconds));
    const means = metrics.map((sum) => sum / accumulate);
    this.metrics.push(...means);
    return means[0];
  }

  /**
   * Run a micro-batch; return its metrics.
   * @param {number} step
   * @param {number} micro
   * @param {{gather: number, bind: number, run: number, read: number}} times are added to
   */
  async #micro(step, micro, times) {
    const { accumulate } = this.#plan;
    const graph = this.#graphs[micro + 1 < accumulate ? 1 : 0];
    const t0 = performance.now();
    this.#gather(step * accumulate + micro);
    const t1 = performance.now();
    for (const { values, into } of this.#hyper) into[0] = Number(values[step]);
    /** @type {Record<string, Tensor>} */
    const feed = {};
    for (const { name, link } of graph.takes) feed[name] = this.#tensors[link];
    const t2 = this.#runIncludes.includes('bind') ? t1 : performance.now();
    const outputs = await this.#run(graph, feed);
    const t3 = performance.now();
    const values = this.#metrics.map(({ name }) => Number(outputs[name].data[0]));
    const t4 = this.#runIncludes.includes('read') ? t3 : performance.now();
    times.gather += t1 - t0;
    times.bind += t2 - t1;
    times.run += t3 - t2;
    times.read += t4 - t3;
    return values;
  }

  /**
   * Copy the rows of a batch.
   * @param {number} place of the batch in the order
   */
  #gather(place) {
    const { batch } = this.#plan;
    const order = this.#order;
    for (const { from, into, size } of this.#copies) {
      for (let row = 0; row < batch; row++) {
        const start = order[place * batch + row] * size;
        into.set(/** @type {any} */ (from.subarray(start, start + size)), row * size);
      }
    }
  }

  /**
   * Run once; the next state that comes out takes the place of the one before.
   *
   * Outputs that `run` is given to write into would gain nothing: onnxruntime-node then copies them
   * once more, and onnxruntime-web copies them to WebAssembly, and not back.
   * @param {Graph} graph
   * @param {Record<string, Tensor>} feed
   * @returns {Promise<Record<string, Tensor>>} the outputs by name, the metrics among them
   */
  async #run({ session, next }, feed) {
    try {
      const outputs = /** @type {Record<string, Tensor>} */ (await session.run(feed));
      for (const { name, link } of next) this.#tensors[link] = outputs[name];
      return outputs;
    } catch (thrown) {
      throw isTrap(thrown) ? new Fault('crash', wordsOf(thrown)) : thrown;
    }
  }
}
