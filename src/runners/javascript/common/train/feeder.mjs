/** What goes into the runs of a training beside its state. */

/** @import { Tensor } from 'onnxruntime-common' */
/** @import { Numbers } from '../types.mjs' */
/** @import { Trainer } from './trainer.mjs' */
/** @import { Training } from './types.mjs' */

import { arrayOf, countOf } from '../tensors.mjs';

/** A batch, hyper-parameters and the seed, in memory that is the same for all runs. */
export class Feeder {
  #training;
  /** @type {{from: Numbers, into: Numbers, size: number}[]} */
  #copies = [];
  /** @type {{into: Float64Array, values: number | number[]}[]} */
  #hyper = [];
  /** By name. @type {Record<string, Tensor>} */
  tensors = {};

  /**
   * @param {Training} training
   * @param {Trainer} trainer
   */
  constructor(training, trainer) {
    this.#training = training;
    const { manifest, data, batch, schedule, seed } = training;
    for (const { name, dtype, shape, data: from } of data) {
      const sizes = shape.slice(1);
      const size = countOf(sizes);
      const into = arrayOf(dtype, batch * size);
      this.#copies.push({ from: /** @type {Numbers} */ (from), into, size });
      this.tensors[name] = trainer.tensor(dtype, into, [batch, ...sizes]);
    }
    for (const { name, dtype, default: otherwise } of manifest.hyper) {
      const into = new Float64Array(1);
      this.#hyper.push({ into, values: schedule[name] ?? otherwise });
      this.tensors[name] = trainer.tensor(dtype, into, []);
    }
    if (!manifest.seed) return;
    const { name, dtype } = manifest.seed;
    this.tensors[name] = trainer.tensor(dtype, BigInt64Array.of(seed), []);
  }

  /**
   * Copy the rows of a batch.
   * @param {number} place of the batch in the order
   */
  gather(place) {
    const { batch, order } = this.#training;
    for (const { from, into, size } of this.#copies) {
      for (let row = 0; row < batch; row++) {
        const start = order[place * batch + row] * size;
        into.set(/** @type {any} */ (from.subarray(start, start + size)), row * size);
      }
    }
  }

  /** @param {number} step */
  setHyper(step) {
    for (const { into, values } of this.#hyper) {
      into[0] = typeof values === 'number' ? values : values[step];
    }
  }
}
