/** One portable training step under ONNX Runtime: the state, and what a batch makes of it. */

/** @import { InferenceSession, Tensor } from 'onnxruntime-common' */
/** @import { Numbers } from '../types.mjs' */
/** @import { Manifest, State } from './types.mjs' */

import { BadInput, Crash, isTrap, wordsOf } from '../faults.mjs';

/**
 * @typedef {object} Sessions
 * @property {Record<string, InferenceSession>} graphs those of the step's that are run
 * @property {typeof Tensor} TensorClass
 *
 * @typedef {Record<string, Tensor>} Tensors
 * @typedef {{session: InferenceSession, inputs: Tensors}} Feed of a run
 */

export class Trainer {
  #manifest;
  #sessions;
  /** @type {Tensors} */
  #state = {};

  /**
   * @param {Manifest} manifest
   * @param {State} state to begin with; it is left as it is
   * @param {Sessions} sessions
   */
  constructor(manifest, state, sessions) {
    for (const [name, session] of Object.entries(sessions.graphs)) {
      const { file, inputs } = manifest.graphs[name];
      const more = inputs.find((input) => !session.inputNames.includes(input));
      if (more !== undefined) throw new BadInput(`${file} takes no '${more}', as its manifest says`);
    }
    this.#manifest = manifest;
    this.#sessions = sessions;
    for (const { name, dtype, shape } of manifest.state) {
      this.#state[name] = this.tensor(dtype, /** @type {Numbers} */ (state.get(name)), shape);
    }
  }

  /**
   * @param {string} dtype
   * @param {Numbers} numbers are not copied
   * @param {readonly number[]} shape
   */
  tensor(dtype, numbers, shape) {
    const { TensorClass } = this.#sessions;
    return new TensorClass(/** @type {any} */ (dtype), /** @type {any} */ (numbers), shape);
  }

  /**
   * The state as it is now; a run leaves these numbers alone, and gives others.
   * @returns {State}
   */
  get state() {
    const entries = Object.entries(this.#state);
    return new Map(entries.map(([name, { data }]) => [name, /** @type {Numbers} */ (data)]));
  }

  /**
   * Return what a run takes: the state as it is now, and what is given beside it.
   * @param {string} name of the graph
   * @param {Tensors} given data, hyper-parameters and seed by name
   * @returns {Feed}
   */
  feedOf(name, given) {
    /** @type {Tensors} */
    const inputs = {};
    for (const input of this.#manifest.graphs[name].inputs)
      inputs[input] = this.#state[input] ?? given[input];
    return { session: this.#sessions.graphs[name], inputs };
  }

  /**
   * Run once; the next state that comes out takes the place of the one before.
   *
   * Outputs that `run` is given to write into would gain nothing: onnxruntime-node then copies them
   * once more, and onnxruntime-web copies them to WebAssembly, and not back.
   * @param {Feed} feed
   * @returns {Promise<Tensors>} the outputs by name, the metrics among them
   */
  async run({ session, inputs }) {
    const outputs = await this.#run(session, inputs);
    for (const { name, next } of this.#manifest.state) {
      if (next !== null && next in outputs) this.#state[name] = outputs[next];
    }
    return outputs;
  }

  /**
   * @param {InferenceSession} session
   * @param {Tensors} inputs
   */
  async #run(session, inputs) {
    try {
      return /** @type {Tensors} */ (await session.run(inputs));
    } catch (thrown) {
      throw isTrap(thrown) ? new Crash(wordsOf(thrown)) : thrown;
    }
  }
}
