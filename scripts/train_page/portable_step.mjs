/** A portable training step (docs/portable-training-step.md) under ONNX Runtime for JavaScript. */

/** @import { InferenceSession, Tensor } from 'onnxruntime-common' */

/**
 * @typedef {Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> | Int8Array<ArrayBuffer>
 *   | Int16Array<ArrayBuffer> | Int32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>
 *   | Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>} Numbers
 * @typedef {keyof typeof KINDS} Dtype
 * @typedef {{name: string, dtype: Dtype, shape: number[], data: Numbers}} Input
 * @typedef {{name: string, role: string, dtype: Dtype, shape: number[], next: string | null}}
 *   StateTensor `next` is the output that holds its next value
 *
 * @typedef {object} Manifest of its manifest.json, what is used here
 * @property {string} step_graph
 * @property {string} state_file
 * @property {{name: string, dtype: Dtype, default: number}[]} hyper
 * @property {StateTensor[]} state
 * @property {{name: string}[]} metrics the loss first
 * @property {Record<string, {file: string, inputs: string[]}>} graphs
 *
 * @typedef {Map<string, Numbers>} State the numbers by name
 * @typedef {Record<string, Tensor>} Tensors by name
 */

const HEAD = 8;
const METADATA = '__metadata__';

// float16 travels as its bits.
const KINDS = {
  float16: { label: 'F16', Numbers: Uint16Array },
  float32: { label: 'F32', Numbers: Float32Array },
  float64: { label: 'F64', Numbers: Float64Array },
  int8: { label: 'I8', Numbers: Int8Array },
  int16: { label: 'I16', Numbers: Int16Array },
  int32: { label: 'I32', Numbers: Int32Array },
  int64: { label: 'I64', Numbers: BigInt64Array },
  uint8: { label: 'U8', Numbers: Uint8Array },
  bool: { label: 'BOOL', Numbers: Uint8Array },
};

/**
 * Return the numbers that little-endian bytes are.
 * @param {Dtype} dtype
 * @param {ArrayBuffer} bytes
 */
export function numbersOf(dtype, bytes) {
  return new KINDS[dtype].Numbers(bytes);
}

/**
 * Return the state that a safetensors file holds.
 * @param {ArrayBuffer} file
 * @param {Manifest} manifest
 * @returns {State}
 */
export function readState(file, manifest) {
  const begin = HEAD + Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.slice(HEAD, begin)));
  if (header[METADATA].step_graph !== manifest.step_graph) {
    throw new Error(`the state is of another step than ${manifest.step_graph}`);
  }
  return new Map(
    manifest.state.map(({ name, dtype, shape }) => {
      const { dtype: label, shape: found, data_offsets: places } = header[name];
      if (label !== KINDS[dtype].label || `${found}` !== `${shape}`) {
        const wanted = `'${name}' of ${dtype}[${shape}]`;
        throw new Error(`the state has ${label}[${found}], expected ${wanted}`);
      }
      return [name, numbersOf(dtype, file.slice(begin + places[0], begin + places[1]))];
    }),
  );
}

/**
 * Return a state's file in pieces; the numbers are not copied. The same state is the same bytes in
 * every language.
 * @param {State} state
 * @param {Manifest} manifest
 * @returns {Uint8Array<ArrayBuffer>[]}
 */
export function writeState(state, manifest) {
  // As text: an object would have names that are numbers before the others.
  const entries = [`"${METADATA}":${JSON.stringify({ step_graph: manifest.step_graph })}`];
  const numbers = manifest.state.map(({ name }) => numbersIn(state, name));
  let end = 0;
  manifest.state.forEach(({ name, dtype, shape }, index) => {
    const data_offsets = [end, (end += numbers[index].byteLength)];
    const entry = { dtype: KINDS[dtype].label, shape, data_offsets };
    entries.push(`${JSON.stringify(name)}:${JSON.stringify(entry)}`);
  });
  const text = new TextEncoder().encode(`{${entries.join()}}`);
  const length = 8 * Math.ceil(text.length / 8);
  const head = new Uint8Array(HEAD + length).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true);
  head.set(text, HEAD);
  const bytes = numbers.map(({ buffer, byteOffset, byteLength }) => {
    return new Uint8Array(buffer, byteOffset, byteLength);
  });
  return [head, ...bytes];
}

/**
 * Return how many updates were done.
 * @param {State} state
 * @param {Manifest} manifest
 */
export function stepOf(state, manifest) {
  const counter = manifest.state.find(({ role }) => role === 'counter');
  return Number(numbersIn(state, counter?.name ?? '')[0]);
}

/**
 * Return the name of a tensor that holds a number which is not finite, or undefined.
 * @param {State} state
 * @param {Manifest} manifest
 */
export function notFinite(state, manifest) {
  return manifest.state.find(({ name, dtype }) => !areFinite(numbersIn(state, name), dtype))?.name;
}

/**
 * @param {Numbers} data
 * @param {string} dtype
 */
function areFinite(data, dtype) {
  if (data instanceof Float32Array || data instanceof Float64Array) {
    return data.every(Number.isFinite);
  }
  // Half floats are held as their bits: all of the exponent's are set in infinity and NaN.
  const exponent = 0x7c00;
  return dtype !== 'float16' || !data.some((bits) => (Number(bits) & exponent) === exponent);
}

/**
 * @param {State} state
 * @param {string} name
 */
function numbersIn(state, name) {
  return /** @type {Numbers} */ (state.get(name));
}

/** The state of a training, and what a batch makes of it. */
export class Trainer {
  #manifest;
  #graphs;
  #TensorClass;
  /** @type {Tensors} */
  #state = {};

  /**
   * @param {Manifest} manifest
   * @param {State} state to begin with; it is left as it is
   * @param {{graphs: Record<string, InferenceSession>, TensorClass: typeof Tensor}} sessions those
   *   of the step's graphs that are run
   */
  constructor(manifest, state, { graphs, TensorClass }) {
    this.#manifest = manifest;
    this.#graphs = graphs;
    this.#TensorClass = TensorClass;
    for (const { name, dtype, shape } of manifest.state) {
      this.#state[name] = this.tensor(dtype, numbersIn(state, name), shape);
    }
  }

  /**
   * @param {Dtype} dtype
   * @param {Numbers} numbers are not copied
   * @param {readonly number[]} shape
   */
  tensor(dtype, numbers, shape) {
    return new this.#TensorClass(/** @type {any} */ (dtype), /** @type {any} */ (numbers), shape);
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
   * Run a graph once; the next state that comes out takes the place of the one before.
   * @param {string} name of the graph
   * @param {Tensors} given data and hyper-parameters by name
   * @returns {Promise<Tensors>} the outputs by name, the metrics among them
   */
  async run(name, given) {
    /** @type {Tensors} */
    const inputs = {};
    for (const input of this.#manifest.graphs[name].inputs)
      inputs[input] = this.#state[input] ?? given[input];
    const outputs = /** @type {Tensors} */ (await this.#graphs[name].run(inputs));
    for (const tensor of this.#manifest.state) {
      if (tensor.next !== null && tensor.next in outputs)
        this.#state[tensor.name] = outputs[tensor.next];
    }
    return outputs;
  }
}
