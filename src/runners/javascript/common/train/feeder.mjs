/** What goes into the runs of a training beside its state. */

/** @import { Tensor } from 'onnxruntime-common' */
/** @import { Numbers } from '../types.mjs' */
/** @import { Trainer } from './trainer.mjs' */
/** @import { Training } from './types.mjs' */

import { arrayOf, countOf } from '../tensors.mjs';

/** @typedef {Pick<Training, 'manifest' | 'data' | 'order' | 'batch' | 'schedule' | 'seed'>} Fed */

/** A batch, hyper-parameters and the seed, in memory that is the same for all runs. */
export class Feeder {
  #training;
  /** @type {{from: Numbers, into: Numbers, size: number}[]} */
  #copies = [];
  /** What the next run takes: one number each, by name. @type {Record<string, Float64Array>} */
  hyper = {};
  /** By name. @type {Record<string, Tensor>} */
  tensors = {};

  /**
   * @param {Fed} training
   * @param {Trainer} trainer
   */
  constructor(training, trainer) {
    this.#training = training;
    const { manifest, data, batch, seed } = training;
    for (const { name, dtype, shape, data: from } of data) {
      const sizes = shape.slice(1);
      const size = countOf(sizes);
      const into = arrayOf(dtype, batch * size);
      this.#copies.push({ from: /** @type {Numbers} */ (from), into, size });
      this.tensors[name] = trainer.tensor(dtype, into, [batch, ...sizes]);
    }
    for (const { name, dtype, default: otherwise } of manifest.hyper) {
      this.hyper[name] = Float64Array.of(otherwise);
      this.tensors[name] = trainer.tensor(dtype, this.hyper[name], []);
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

  /**
   * Set the hyper-parameters that the schedule has.
   * @param {number} step
   */
  setHyper(step) {
    for (const [name, values] of Object.entries(this.#training.schedule)) {
      this.hyper[name][0] = typeof values === 'number' ? values : values[step];
    }
  }
}
