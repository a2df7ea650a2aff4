/** One portable training step under ONNX Runtime: the state, and what a batch makes of it. */

/** @import { InferenceSession, Tensor } from 'onnxruntime-common' */
/** @import { Numbers } from '../types.mjs' */
/** @import { Graph, Manifest, State } from './types.mjs' */

import { Crash, isTrap, wordsOf } from '../faults.mjs';
import { arrayOf, countOf } from '../tensors.mjs';

/**
 * @typedef {object} Sessions
 * @property {Record<string, InferenceSession>} graphs those of the step's that are run
 * @property {typeof Tensor} TensorClass
 * @property {boolean} writesInto whether `run` writes into tensors that it is given for outputs
 *
 * @typedef {Record<string, Tensor>} Tensors
 * @typedef {{graph: Graph, session: InferenceSession, inputs: Tensors}} Feed of a run
 */

export class Trainer {
  #manifest;
  #sessions;
  /** @type {Tensors} */
  #state = {};
  /**
   * Where `run` writes next values, by the name of the output: a second set of tensors, which
   * changes places with the first.
   * @type {Tensors}
   */
  #into = {};

  /**
   * @param {Manifest} manifest
   * @param {State} state is the trainer's from now on
   * @param {Sessions} sessions
   */
  constructor(manifest, state, sessions) {
    this.#manifest = manifest;
    this.#sessions = sessions;
    for (const { name, dtype, shape, next } of manifest.state) {
      this.#state[name] = this.tensor(dtype, /** @type {Numbers} */ (state.get(name)), shape);
      if (next === null || !sessions.writesInto) continue;
      this.#into[next] = this.tensor(dtype, arrayOf(dtype, countOf(shape)), shape);
    }
    if (!sessions.writesInto) return;
    for (const { name, dtype } of manifest.metrics) {
      this.#into[name] = this.tensor(dtype, arrayOf(dtype, 1), []);
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
   * The state as it is now. Where `run` writes into given tensors, its numbers change with the next.
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
    const graph = this.#manifest.graphs[name];
    /** @type {Tensors} */
    const inputs = {};
    for (const input of graph.inputs) inputs[input] = this.#state[input] ?? given[input];
    return { graph, session: this.#sessions.graphs[name], inputs };
  }

  /**
   * Run once; the next state that comes out takes the place of the one before.
   * @param {Feed} feed
   * @returns {Promise<Tensors>} the outputs by name, the metrics among them
   */
  async run({ graph, session, inputs }) {
    const outputs = await this.#run(session, inputs, graph);
    for (const { name, next } of this.#manifest.state) {
      if (next === null || !(next in outputs)) continue;
      const before = this.#state[name];
      this.#state[name] = outputs[next];
      if (next in this.#into) this.#into[next] = before;
    }
    return outputs;
  }

  /**
   * @param {InferenceSession} session
   * @param {Tensors} inputs
   * @param {Graph} graph
   */
  async #run(session, inputs, graph) {
    try {
      if (!this.#sessions.writesInto) return /** @type {Tensors} */ (await session.run(inputs));
      const into = Object.fromEntries(graph.outputs.map((name) => [name, this.#into[name]]));
      // What is returned would be copies of these.
      await session.run(inputs, into);
      return into;
    } catch (thrown) {
      throw isTrap(thrown) ? new Crash(wordsOf(thrown)) : thrown;
    }
  }
}
