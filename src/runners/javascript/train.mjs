/** Level `train` of the runner contract. Node.js and the page have it. */

import { Fault, isTrap, wordsOf } from './faults.mjs';
import { int64 } from './measure.mjs';
import { ROLE, arrayOf, countOf, tensorOf } from './plan.mjs';
import { bytesOf, nanoseconds } from './session.mjs';

/** @import { InferenceSession, Tensor } from 'onnxruntime-common' */
/** @import { Plan } from './plan.mjs' */
/** @import { Entry, Host, Numbers } from './types.mjs' */

/**
 * @typedef {Awaited<ReturnType<typeof inputsOf>>} Inputs
 * @typedef {{session: InferenceSession, takes: Entry[], next: Entry[]}} Graph `next`: what it gives
 *   of the state
 * @typedef {object} Training
 * @property {Plan} plan
 * @property {Graph[]} graphs
 * @property {Inputs} inputs
 * @property {boolean} bindsInRun
 * @property {number[]} times gather, bind, run and read of each step, in nanoseconds
 * @property {string[]} names of the metrics
 * @property {number[]} metrics all of each step
 */

/**
 * Train; return what the last line says.
 * @param {Host} host
 */
export async function train(host) {
  const { plan } = host;
  const inputs = await inputsOf(host);
  const opened = [];
  for (const file of plan.all(ROLE.graph)) opened.push(await host.open(file, false));
  const [{ facts }] = opened;
  // Metrics are read out of JavaScript's memory, into which outputs are copied inside of run.
  const run_includes = facts.run_includes.map((part) => (part === 'copy' ? 'read' : part));
  const isState = (/** @type {Entry} */ { link }) => plan.entries[link].role === ROLE.state;
  const graphs = opened.map(({ session }, group) => ({
    session,
    takes: plan.all(ROLE.takes, group),
    next: plan.all(ROLE.gives, group).filter(isState),
  }));
  const bindsInRun = run_includes.includes('bind');
  const names = plan.all(ROLE.metric).map(({ name }) => name);
  /** @type {Training} */
  const training = { plan, graphs, inputs, bindsInRun, times: [], names, metrics: [] };
  await toEnd(training, host);
  await host.snapshot();
  const out = plan.one(ROLE.out);
  const metrics = new Uint8Array(Float64Array.from(training.metrics).buffer);
  await host.write(out, 'times.bin', int64(training.times), 'w');
  await host.write(out, 'metrics.bin', metrics, 'w');
  const session_ns = opened.reduce((sum, { sessionNs }) => sum + sessionNs, 0);
  return { ...facts, run_includes, session_ns };
}

/**
 * Return what the runs take, in memory that is the same for all of them.
 * @param {Host} host
 */
async function inputsOf(host) {
  const { plan, TensorClass } = host;
  /** By the number of the entry. @type {Tensor[]} */
  const tensors = [];
  /** @type {(entry: Entry, dtype: string, numbers: any, shape: number[]) => void} */
  const hold = ({ index }, dtype, numbers, shape) => {
    tensors[index] = new TensorClass(/** @type {any} */ (dtype), numbers, shape);
  };
  /** @type {(entry: Entry) => Promise<any>} */
  const read = async (entry) => tensorOf(entry, await host.read(entry)).data;
  for (const entry of plan.all(ROLE.state)) {
    hold(entry, arrayOf(entry)[0], await read(entry), entry.shape);
  }
  /** Rows of all data, and of the batch. @type {{from: Numbers, into: Numbers, size: number}[]} */
  const copies = [];
  for (const entry of plan.all(ROLE.data)) {
    const [dtype, Numbers] = arrayOf(entry);
    const rest = entry.shape.slice(1);
    const into = new Numbers(plan.batch * countOf(rest));
    copies.push({ from: await read(entry), into, size: countOf(rest) });
    hold(entry, dtype, into, [plan.batch, ...rest]);
  }
  /** The value of each step, and where the next run reads it. */
  const hyper = [];
  for (const entry of plan.all(ROLE.hyper)) {
    const into = new Float64Array(1);
    hyper.push({ values: /** @type {Float64Array} */ (await read(entry)), into });
    hold(entry, 'float64', into, []);
  }
  for (const entry of plan.all(ROLE.seed)) hold(entry, 'int64', BigInt64Array.of(plan.seed), []);
  const rows = /** @type {BigInt64Array} */ (await read(plan.one(ROLE.order)));
  return { tensors, copies, hyper, order: Float64Array.from(rows, Number) };
}

/**
 * Do the steps and write checkpoints; a loss or a state that is not finite ends them.
 * @param {Training} training
 * @param {Host} host
 */
async function toEnd(training, host) {
  const { firstStep, steps, checkpointEvery } = training.plan;
  let saved = 0;
  const save = async (/** @type {number} */ updates) => {
    const begin = performance.now();
    const slot = saved++ % 2;
    await host.save(`state-${slot}.bin`, stateBlock(training));
    const ns = nanoseconds(performance.now() - begin);
    await host.say({ checkpoint: updates, slot, ns });
    return areFinite(training);
  };
  for (let index = 0; index < steps; index++) {
    if (!Number.isFinite(await step(training, index))) return;
    const updates = firstStep + index + 1;
    const isDue = checkpointEvery > 0 && updates % checkpointEvery === 0;
    // The next one would take the place of the last good one.
    if (isDue && index + 1 < steps && !(await save(updates))) return;
  }
  await save(firstStep + steps);
}

/**
 * Tell whether all numbers of the state are finite.
 * @param {Training} training
 */
function areFinite({ plan, inputs }) {
  return plan.all(ROLE.state).every(({ index }) => {
    const { data, type } = inputs.tensors[index];
    if (data instanceof Float32Array || data instanceof Float64Array) {
      return data.every(Number.isFinite);
    }
    // Half floats are held as their bits: all of the exponent's are set in infinity and NaN.
    const halves = /** @type {Uint16Array} */ (data);
    return type !== 'float16' || halves.every((bits) => (~bits & 0x7c00) !== 0);
  });
}

/**
 * Return the state's block in pieces, as the plan has it laid out.
 * @param {Training} training
 */
function stateBlock({ plan, inputs }) {
  const pieces = [];
  let place = 0;
  for (const { index, offset } of plan.all(ROLE.state)) {
    const bytes = bytesOf(inputs.tensors[index]);
    pieces.push(new Uint8Array(offset - place), bytes);
    place = offset + bytes.length;
  }
  return [...pieces, new Uint8Array(plan.stateBytes - place)];
}

/**
 * Do a step: keep its times and metrics, return its loss.
 * @param {Training} training
 * @param {number} index
 */
async function step(training, index) {
  const { accumulate } = training.plan;
  const times = [0, 0, 0, 0];
  const sums = training.names.map(() => 0);
  for (let micro = 0; micro < accumulate; micro++) {
    const values = await microBatch(training, index, micro, times);
    values.forEach((value, metric) => (sums[metric] += value));
  }
  const means = sums.map((sum) => sum / accumulate);
  training.times.push(...times.map(nanoseconds));
  training.metrics.push(...means);
  return means[0];
}

/**
 * Run a micro-batch; return its metrics.
 * @param {Training} training
 * @param {number} index of the step
 * @param {number} micro
 * @param {number[]} times are added to
 */
async function microBatch(training, index, micro, times) {
  const { plan, graphs, inputs, bindsInRun, names } = training;
  const { session, takes, next } = graphs[micro + 1 < plan.accumulate ? 1 : 0];
  const t0 = performance.now();
  gather(inputs, (index * plan.accumulate + micro) * plan.batch, plan.batch);
  const t1 = performance.now();
  for (const { values, into } of inputs.hyper) into[0] = values[index];
  /** @type {Record<string, Tensor>} */
  const feed = {};
  for (const { name, link } of takes) feed[name] = inputs.tensors[link];
  const t2 = bindsInRun ? t1 : performance.now();
  const outputs = await run(session, feed);
  // The next state takes the place of the one before. Outputs that `run` is given to write into
  // would gain nothing: onnxruntime-node then copies them once more, and onnxruntime-web copies
  // them to WebAssembly, and not back.
  for (const { name, link } of next) inputs.tensors[link] = outputs[name];
  const t3 = performance.now();
  const read = names.map((name) => Number(outputs[name].data[0]));
  // What is read was copied inside of run: no time of its own.
  [t1 - t0, t2 - t1, t3 - t2, 0].forEach((time, part) => (times[part] += time));
  return read;
}

/**
 * Copy the rows of a batch.
 * @param {Inputs} inputs
 * @param {number} place of its first row in the order
 * @param {number} batch
 */
function gather({ copies, order }, place, batch) {
  for (const { from, into, size } of copies) {
    for (let row = 0; row < batch; row++) {
      const start = order[place + row] * size;
      into.set(/** @type {any} */ (from.subarray(start, start + size)), row * size);
    }
  }
}

/**
 * @param {InferenceSession} session
 * @param {Record<string, Tensor>} feed
 */
async function run(session, feed) {
  try {
    return /** @type {Record<string, Tensor>} */ (await session.run(feed));
  } catch (thrown) {
    throw isTrap(thrown) ? new Fault('crash', wordsOf(thrown)) : thrown;
  }
}
