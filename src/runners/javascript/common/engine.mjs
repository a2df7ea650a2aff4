/** One session of ONNX Runtime: what it takes, one step, its outputs. */

/** @import { InferenceSession, OnnxValue, Tensor } from 'onnxruntime-common' */
/** @import { Feed, Input, Opened, Output, Parts } from './types.mjs' */

import { BadInput, Crash, Unsupported, isTrap, wordsOf } from './faults.mjs';
import { allBatches } from './batches.mjs';
import { outputOf } from './tensors.mjs';

export class Engine {
  #session;
  #Tensor;
  #bindsInRun;
  /** @type {string[]} */
  #fetches;
  /** @type {(tensors: Record<string, Tensor>) => Promise<Record<string, OnnxValue>>} */
  #run;
  /**
   * Outputs of the last step by name.
   * @type {Record<string, OnnxValue>}
   */
  results = {};

  /** @param {Opened} opened */
  constructor({ session, facts, sessionNs, bindsInRun, TensorClass, endProfile }) {
    this.facts = facts;
    this.sessionNs = sessionNs;
    this.endProfile = endProfile;
    this.#session = session;
    this.#Tensor = TensorClass;
    this.#bindsInRun = bindsInRun;
    for (const value of session.outputMetadata) {
      if (value.isTensor && /int4$/.test(value.type)) {
        throw new Unsupported(
          `output '${value.name}' is ${value.type}, which JavaScript's ONNX Runtime does not give`,
        );
      }
    }
    this.#fetches = session.outputMetadata
      .filter((value) => value.isTensor)
      .map((value) => value.name);
    const all = this.#fetches.length === session.outputNames.length;
    this.#run = all ? (given) => session.run(given) : (given) => session.run(given, this.#fetches);
    if (this.#fetches.length === 0) {
      throw new Unsupported(
        `no output of [${session.outputNames}] is a tensor, and JavaScript's ONNX Runtime gives no other values`,
      );
    }
  }

  /** Outputs that are no tensors: JavaScript's ONNX Runtime cannot give them. */
  get notTensors() {
    return this.#session.outputNames.filter((name) => !this.#fetches.includes(name));
  }

  /**
   * Raise BadInput unless these are inputs of the model, in its types and shapes.
   * @param {Feed} feed
   * @param {number | null} batch
   */
  check(feed, batch) {
    const takes = this.#session.inputNames;
    const given = feed.map((input) => input.name);
    const names = `the session takes [${takes}], --inputs gives [${given}]`;
    for (const wanted of this.#session.inputMetadata) {
      const input = feed.find(({ name }) => name === wanted.name);
      if (!input) throw new BadInput(names);
      checkInput(wanted, input, batch);
    }
    // What has a default is no input to this binding, which would leave it out without a word.
    if (given.some((name) => !takes.includes(name))) throw new Unsupported(names);
  }

  /**
   * Bind, run, and have the outputs in `results`.
   * @param {Feed} feed
   * @returns {Promise<Parts>}
   */
  async step(feed) {
    const t0 = performance.now();
    /** @type {Record<string, Tensor>} */
    const tensors = {};
    for (const { name, dtype, data, shape } of feed) {
      tensors[name] = new this.#Tensor(
        /** @type {any} */ (dtype),
        /** @type {any} */ (data),
        shape,
      );
    }
    const t1 = this.#bindsInRun ? t0 : performance.now();
    try {
      this.results = await this.#run(tensors);
    } catch (thrown) {
      throw isTrap(thrown) ? new Crash(wordsOf(thrown)) : thrown;
    }
    const t2 = performance.now();
    return [nanoseconds(t1 - t0), nanoseconds(t2 - t1), 0];
  }

  /**
   * Run every row once, the last batch perhaps partial; hand on the outputs of each batch as they
   * come, in the model's order.
   * @param {Feed} feed
   * @param {number | null} batch
   * @param {(outputs: Output[]) => unknown} take
   */
  async allRows(feed, batch, take) {
    for (const part of allBatches(feed, batch)) {
      await this.step(part);
      await take(
        this.#session.outputNames.map((name) =>
          this.#fetches.includes(name)
            ? outputOf(name, /** @type {Tensor} */ (this.results[name]))
            : { name, kind: 'not a tensor: JavaScript gives tensors only' },
        ),
      );
    }
  }

  /** Give its memory back: sessions are not collected. */
  async close() {
    await this.#session.release();
  }
}

/**
 * @param {InferenceSession.ValueMetadata} wanted
 * @param {Input} input
 * @param {number | null} batch
 */
function checkInput(wanted, { name, dtype, shape }, batch) {
  if (!wanted.isTensor) {
    throw new Unsupported(
      `input '${name}' is not a tensor, and JavaScript's ONNX Runtime takes no other values`,
    );
  }
  if (wanted.type !== dtype) {
    throw new BadInput(`input '${name}' is ${dtype}, the model takes ${wanted.type}`);
  }
  // Also the shape of what may have any number of axes.
  if (wanted.shape.length === 0) return;
  const runs = batch === null ? [shape] : batchShapes(shape, batch);
  for (const run of runs) {
    if (!fits(wanted.shape, run)) {
      throw new BadInput(
        `input '${name}' has shape [${run}] in a run, the model takes [${wanted.shape}]`,
      );
    }
  }
}

/**
 * Return the shapes of a full batch and, where the rows do not come out even, of the last one.
 * @param {number[]} shape
 * @param {number} batch
 */
function batchShapes([rows, ...rest], batch) {
  const last = rows % batch;
  return (last ? [batch, last] : [batch]).map((size) => [size, ...rest]);
}

/**
 * Names and negative sizes stand for any size; WebAssembly gives those as 32 bits without a sign.
 * @param {readonly (number | string)[]} wanted
 * @param {number[]} given
 */
function fits(wanted, given) {
  const free = (/** @type {number | string} */ size) =>
    typeof size === 'string' || size < 0 || size >= 2 ** 31;
  return (
    wanted.length === given.length &&
    wanted.every((size, axis) => free(size) || size === given[axis])
  );
}

/** @param {number} milliseconds */
function nanoseconds(milliseconds) {
  return Math.round(milliseconds * 1e6);
}
