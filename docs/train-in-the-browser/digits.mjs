/** A portable training step and its data, as this page's folder holds them, under onnxruntime-web. */

/** @import { Tensor } from 'onnxruntime-common' */
/** @import { Input, Manifest, State, Tensors } from './portable_step.mjs' */

import { Trainer, notFinite, numbersOf, readState, stepOf, writeState } from './portable_step.mjs';

/** @typedef {typeof import('onnxruntime-web')} Ort */

const HERE = new URL('.', import.meta.url).href;
const BATCH = 64;

/** @param {string} file */
async function fetched(file) {
  const response = await fetch(HERE + file);
  if (!response.ok) throw new Error(`${file}: ${response.status} ${response.statusText}`);
  return response;
}

/** @param {string} file */
async function bytesOf(file) {
  return (await fetched(file)).arrayBuffer();
}

/**
 * Return the tensors that the header of a folder names.
 * @param {string} folder
 * @returns {Promise<Input[]>}
 */
async function tensorsOf(folder) {
  const { tensors } = await (await fetched(`${folder}/header.json`)).json();
  return Promise.all(
    tensors.map(async (/** @type {any} */ { file, ...entry }) => ({
      ...entry,
      data: numbersOf(entry.dtype, await bytesOf(`${folder}/${file}`)),
    })),
  );
}

export class Digits {
  #manifest;
  #sessions;
  #start;
  /** All training rows. */
  #data;
  /** Held-out rows. @type {Tensors} */
  #heldOut = {};
  /** The last state whose numbers are known to be finite. @type {State} */
  #good;
  /** The hyper-parameters of the next step. @type {Record<string, Float64Array<ArrayBuffer>>} */
  #hyper = {};
  /** What a step takes beside its state: a batch, hyper-parameters. @type {Tensors} */
  #batch = {};
  /** Rows of this epoch that are still to come. @type {number[]} */
  #left = [];
  #random = 1;
  /** @type {Trainer} */
  #trainer;

  /**
   * @param {Ort} ort
   * @param {Manifest} manifest
   * @param {Record<string, import('onnxruntime-web').InferenceSession>} graphs
   * @param {ArrayBuffer} start the file of the state to begin with
   * @param {Input[]} data
   * @param {Input[]} heldOut
   */
  constructor(ort, manifest, graphs, start, data, heldOut) {
    this.#manifest = manifest;
    this.#start = start;
    this.#data = data;
    this.heldOut = heldOut;
    const TensorClass = /** @type {typeof Tensor} */ (/** @type {unknown} */ (ort.Tensor));
    this.#sessions = { graphs: /** @type {any} */ (graphs), TensorClass };
    this.#good = readState(start, manifest);
    this.#trainer = new Trainer(manifest, this.#good, this.#sessions);
    for (const { name, dtype, data: numbers, shape } of heldOut) {
      this.#heldOut[name] = this.#trainer.tensor(dtype, numbers, shape);
    }
    for (const { name, dtype, data: all, shape } of data) {
      const own = all.slice(0, (BATCH * all.length) / shape[0]);
      this.#batch[name] = this.#trainer.tensor(dtype, own, [BATCH, ...shape.slice(1)]);
    }
    for (const { name, default: value } of manifest.hyper) {
      this.#hyper[name] = Float64Array.of(value);
      this.#batch[name] = this.#trainer.tensor('float64', this.#hyper[name], []);
    }
  }

  /** Load all that stands beside this page. */
  static async load() {
    /** @type {Ort} */
    const ort = await import(`${HERE}ort/ort.wasm.min.mjs`);
    ort.env.logLevel = 'error';
    ort.env.wasm.wasmPaths = `${HERE}ort/`;
    // The steps are short: threads would wait for each other more than compute.
    ort.env.wasm.numThreads = 1;
    /** @type {Manifest} */
    const manifest = await (await fetched('step/manifest.json')).json();
    const names = ['step', 'eval', 'infer'];
    const sessions = await Promise.all(
      names.map(async (name) =>
        ort.InferenceSession.create(await bytesOf(`step/${manifest.graphs[name].file}`)),
      ),
    );
    const graphs = Object.fromEntries(names.map((name, index) => [name, sessions[index]]));
    const start = await bytesOf(`step/${manifest.state_file}`);
    const [data, heldOut] = [await tensorsOf('data/train'), await tensorsOf('data/held-out')];
    return new Digits(ort, manifest, graphs, start, data, heldOut);
  }

  /** Begin with the first state again, and with the same batches. */
  restart() {
    this.#good = readState(this.#start, this.#manifest);
    this.#left = [];
    this.#random = 1;
    this.goBack();
  }

  /** Go on from the state that was kept. */
  goBack() {
    this.#trainer = new Trainer(this.#manifest, this.#good, this.#sessions);
  }

  /** How many updates the last state that is known to be good has had. */
  get step() {
    return stepOf(this.#good, this.#manifest);
  }

  get rate() {
    return this.#hyper.lr[0];
  }

  /** The rate of the next step. */
  set rate(value) {
    this.#hyper.lr[0] = value;
  }

  /** Train on the next batch; return its loss. */
  async train() {
    for (let row = 0; row < BATCH; row++) this.#copyRow(this.#nextRow(), row);
    const outputs = await this.#trainer.run('step', this.#batch);
    return Number(outputs[this.#manifest.metrics[0].name].data[0]);
  }

  /**
   * @param {number} row of all
   * @param {number} place in the batch
   */
  #copyRow(row, place) {
    for (const { name, data, shape } of this.#data) {
      const size = data.length / shape[0];
      const own = data.subarray(row * size, (row + 1) * size);
      /** @type {any} */ (this.#batch[name].data).set(own, place * size);
    }
  }

  /** Each row once in an epoch, in an order that is the same each time. */
  #nextRow() {
    if (this.#left.length === 0) this.#left = [...Array(this.#data[0].shape[0]).keys()];
    // A linear congruential generator (Numerical Recipes); its upper bits are the better ones.
    this.#random = (Math.imul(1664525, this.#random) + 1013904223) >>> 0;
    const place = Math.floor((this.#random / 2 ** 32) * this.#left.length);
    const row = this.#left[place];
    this.#left[place] = this.#left[this.#left.length - 1];
    this.#left.pop();
    return row;
  }

  /** Keep the state where all its numbers are finite; tell whether they are. */
  keep() {
    const { state } = this.#trainer;
    const isFinite = notFinite(state, this.#manifest) === undefined;
    if (isFinite) this.#good = state;
    return isFinite;
  }

  /** Return the accuracy on all held-out digits. */
  async accuracy() {
    const { accuracy } = await this.#trainer.run('eval', this.#heldOut);
    return Number(accuracy.data[0]);
  }

  /**
   * Return the classes that the first held-out digits are taken for.
   * @param {number} count
   */
  async classes(count) {
    const [{ dtype, shape, data, name }] = this.heldOut;
    const size = shape.slice(1).reduce((product, axis) => product * axis, 1);
    const some = /** @type {Float32Array<ArrayBuffer>} */ (data).subarray(0, count * size);
    const tensor = this.#trainer.tensor(dtype, some, [count, ...shape.slice(1)]);
    const [output] = Object.values(await this.#trainer.run('infer', { [name]: tensor }));
    const scores = /** @type {Float32Array} */ (output.data);
    const wide = scores.length / count;
    return Array.from({ length: count }, (_, row) => {
      const own = scores.subarray(row * wide, (row + 1) * wide);
      return own.indexOf(Math.max(...own));
    });
  }

  /** Return the state as a file that every runner goes on with. */
  file() {
    return new Blob(writeState(this.#good, this.#manifest));
  }
}
