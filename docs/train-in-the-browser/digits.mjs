/** A portable training step and its data, as this page's folder holds them, under onnxruntime-web. */

/** @import { Tensor } from 'onnxruntime-common' */
/** @import { Feed, Numbers } from './runner/types.mjs' */
/** @import { Manifest, State } from './runner/train/types.mjs' */

import { decode } from './runner/tensors.mjs';
import { Feeder } from './runner/train/feeder.mjs';
import { checkManifest } from './runner/train/manifest.mjs';
import { notFinite, readState, stepOf, writeState } from './runner/train/state.mjs';
import { Trainer } from './runner/train/trainer.mjs';

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
  return new Uint8Array(await (await fetched(file)).arrayBuffer());
}

/**
 * Return the tensors that the header of a folder names.
 * @param {string} folder
 * @returns {Promise<Feed>}
 */
async function tensorsOf(folder) {
  const { tensors } = await (await fetched(`${folder}/header.json`)).json();
  return Promise.all(
    tensors.map(async (/** @type {any} */ { file, ...entry }) => {
      const path = `${folder}/${file}`;
      return { ...entry, data: decode(entry, await bytesOf(path), path) };
    }),
  );
}

export class Digits {
  #manifest;
  #sessions;
  #start;
  /** All training rows. */
  #data;
  /** Held-out rows as tensors by name. @type {Record<string, Tensor>} */
  #heldOut = {};
  /** The last state whose numbers are known to be finite. @type {State} */
  #good;
  #order = new Float64Array(BATCH);
  /** Rows of this epoch that are still to come. @type {number[]} */
  #left = [];
  #random = 1;
  /** @type {Trainer} */
  #trainer;
  /** @type {Feeder} */
  #feeder;

  /**
   * @param {Ort} ort
   * @param {Manifest} manifest
   * @param {Record<string, import('onnxruntime-web').InferenceSession>} graphs
   * @param {Uint8Array<ArrayBuffer>} start the file of the state to begin with
   * @param {Feed} data
   * @param {Feed} heldOut
   */
  constructor(ort, manifest, graphs, start, data, heldOut) {
    this.#manifest = manifest;
    this.#start = start;
    this.#data = data;
    this.heldOut = heldOut;
    const TensorClass = /** @type {typeof Tensor} */ (/** @type {unknown} */ (ort.Tensor));
    this.#sessions = { graphs: /** @type {any} */ (graphs), TensorClass };
    this.#good = readState(start, manifest, manifest.state_file);
    this.#trainer = new Trainer(manifest, this.#good, this.#sessions);
    this.#feeder = this.#newFeeder();
    for (const { name, dtype, data: numbers, shape } of heldOut) {
      const tensor = this.#trainer.tensor(dtype, /** @type {Numbers} */ (numbers), shape);
      this.#heldOut[name] = tensor;
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
    const given = await (await fetched('step/manifest.json')).json();
    const manifest = checkManifest(given, 'step/manifest.json');
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

  #newFeeder() {
    const given = { manifest: this.#manifest, data: this.#data, order: this.#order, batch: BATCH };
    return new Feeder({ ...given, schedule: {}, seed: 0n }, this.#trainer);
  }

  /** Begin with the first state again, and with the same batches. */
  restart() {
    this.#good = readState(this.#start, this.#manifest, this.#manifest.state_file);
    this.#left = [];
    this.#random = 1;
    this.goBack();
  }

  /** Go on from the state that was kept. */
  goBack() {
    const { lr } = this.#feeder.hyper;
    this.#trainer = new Trainer(this.#manifest, this.#good, this.#sessions);
    this.#feeder = this.#newFeeder();
    this.#feeder.hyper.lr[0] = lr[0];
  }

  /** How many updates the last state that is known to be good has had. */
  get step() {
    return stepOf(this.#good, this.#manifest);
  }

  get rate() {
    return this.#feeder.hyper.lr[0];
  }

  /** The rate of the next step. */
  set rate(value) {
    this.#feeder.hyper.lr[0] = value;
  }

  /** Train on the next batch; return its loss. */
  async train() {
    for (let row = 0; row < BATCH; row++) this.#order[row] = this.#nextRow();
    this.#feeder.gather(0);
    const feed = this.#trainer.feedOf('step', this.#feeder.tensors);
    const outputs = await this.#trainer.run(feed);
    return Number(outputs[this.#manifest.metrics[0].name].data[0]);
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
    const { accuracy } = await this.#trainer.run(this.#trainer.feedOf('eval', this.#heldOut));
    return Number(accuracy.data[0]);
  }

  /**
   * Return the classes that the first held-out digits are taken for.
   * @param {number} count
   */
  async classes(count) {
    const [{ dtype, shape, data, name }] = this.heldOut;
    const size = shape.slice(1).reduce((product, axis) => product * axis, 1);
    const some = /** @type {Float32Array} */ (data).subarray(0, count * size);
    const tensor = this.#trainer.tensor(dtype, some, [count, ...shape.slice(1)]);
    const feed = this.#trainer.feedOf('infer', { [name]: tensor });
    const [output] = Object.values(await this.#trainer.run(feed));
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
