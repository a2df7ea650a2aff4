/** Reads the plan: docs/runner-contract.md. Node.js and the page both do. */

import { Fault } from './faults.mjs';

/** @import { Entry, Numbers } from './types.mjs' */

export const LEVEL = { latency: 1, load: 2, cases: 3, train: 4 };
export const ROLE = {
  ...{ library: 1, provider: 2, out: 3, option: 4, providerOption: 5, model: 6, outputs: 7 },
  ...{ input: 8, output: 9, profile: 10, arrivals: 11, graph: 12, state: 13, data: 14 },
  ...{ hyper: 15, seed: 16, metric: 17, order: 18, takes: 19, gives: 20 },
};

const [MAGIC, MARK, VERSION] = ['TRANSECT', 0x01020304, 1];
const [HEADER_BYTES, ENTRY_BYTES] = [192, 128];
const STRING = 8;
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

// Names of ONNX's numbers. bfloat16, 16, has no array in JavaScript; float16 travels as its bits.
/** @type {Record<number, [string, new (from: any) => Numbers]>} */
const ARRAYS = {
  1: ['float32', Float32Array],
  2: ['uint8', Uint8Array],
  3: ['int8', Int8Array],
  4: ['uint16', Uint16Array],
  5: ['int16', Int16Array],
  6: ['int32', Int32Array],
  7: ['int64', BigInt64Array],
  9: ['bool', Uint8Array],
  10: ['float16', Uint16Array],
  11: ['float64', Float64Array],
  12: ['uint32', Uint32Array],
  13: ['uint64', BigUint64Array],
};

export class Plan {
  /** @type {Entry[]} */
  entries = [];

  /**
   * Raises Fault for what is none.
   * @param {Uint8Array} bytes
   */
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    check(bytes, view);
    const number = (/** @type {number} */ at) => Number(view.getBigUint64(at, true));
    this.level = view.getUint32(24, true);
    this.batch = number(32);
    this.warmup = number(48);
    this.minRuns = number(56);
    this.maxNs = number(64);
    this.sessions = number(72);
    this.lastBeginNs = number(80);
    this.firstStep = number(88);
    this.steps = number(96);
    this.checkpointEvery = number(104);
    this.accumulate = number(112);
    this.seed = view.getBigInt64(120, true);
    this.stateBytes = number(128);
    for (let index = 0; index < view.getUint32(28, true); index++) {
      this.entries.push(entryOf(bytes, view, index));
    }
  }

  /**
   * Return the entries of a role, of one group where it is given, in their order.
   * @param {number} role
   * @param {number} [group]
   */
  all(role, group) {
    return this.entries.filter(
      (entry) => entry.role === role && (group === undefined || entry.group === group),
    );
  }

  /**
   * Return the first entry of a role, which is there.
   * @param {number} role
   * @param {number} [group]
   */
  one(role, group) {
    return this.all(role, group)[0];
  }

  /** @param {number} role */
  text(role) {
    return this.one(role)?.text;
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {DataView} view
 */
function check(bytes, view) {
  const wrong = (/** @type {string} */ what) => new Fault('bad-input', what);
  const hex = (/** @type {number} */ value) => `0x${value.toString(16).padStart(8, '0')}`;
  if (bytes.length < 24 || UTF8.decode(bytes.subarray(0, 8)) !== MAGIC) {
    throw wrong(`is no plan, expected a file that begins with ${MAGIC}`);
  }
  const mark = view.getUint32(8, true);
  if (mark !== MARK) {
    throw wrong(`is of another byte order: mark ${hex(mark)}, expected ${hex(MARK)}`);
  }
  const version = view.getUint32(12, true);
  if (version !== VERSION) throw wrong(`is of version ${version}, expected ${VERSION}`);
  const size = view.getBigUint64(16, true);
  if (Number(size) !== bytes.length || size < HEADER_BYTES) {
    throw wrong(`holds ${bytes.length} bytes, expected ${size}`);
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {DataView} view
 * @param {number} index
 * @returns {Entry}
 */
function entryOf(bytes, view, index) {
  const begin = HEADER_BYTES + index * ENTRY_BYTES;
  const [role, group, dtype, axes, link] = [0, 4, 8, 12, 16].map((at) =>
    view.getUint32(begin + at, true),
  );
  const [nameAt, nameSize, textAt, textSize, offset, size, ...shape] = Array.from(
    { length: 6 + axes },
    (_, place) => Number(view.getBigUint64(begin + 24 + 8 * place, true)),
  );
  const text = (/** @type {number} */ at, /** @type {number} */ length) =>
    UTF8.decode(bytes.subarray(at, at + length));
  const [name, value] = [text(nameAt, nameSize), text(textAt, textSize)];
  return { index, role, group, dtype, name, text: value, offset, size, shape, link };
}

/** @param {readonly number[]} shape */
export function countOf(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/**
 * Return the name and the class of numbers of a type. Raises Fault for what JavaScript cannot hold.
 * @param {Entry} entry
 */
export function arrayOf({ name, dtype }) {
  if (ARRAYS[dtype]) return ARRAYS[dtype];
  const what = dtype === STRING ? 'strings as numbers' : 'bfloat16';
  throw new Fault('unsupported', `ONNX Runtime takes no ${what} from JavaScript: tensor '${name}'`);
}

/**
 * Return the number of a type that ONNX Runtime names.
 * @param {string} name
 */
export function codeOf(name) {
  if (name === 'string') return STRING;
  return Number(Object.keys(ARRAYS).find((code) => ARRAYS[Number(code)][0] === name));
}

/**
 * Return a tensor over its bytes, which nothing else is in. Raises Fault for what JavaScript cannot
 * hold.
 * @param {Entry} entry
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export function tensorOf(entry, bytes) {
  const { name, shape } = entry;
  if (entry.dtype === STRING) return { name, dtype: 'string', shape, data: texts(name, bytes) };
  const [dtype, Numbers] = arrayOf(entry);
  return { name, dtype, shape, data: new Numbers(bytes.buffer) };
}

/**
 * @param {string} name
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function texts(name, bytes) {
  const view = new DataView(bytes.buffer);
  const found = [];
  for (let place = 0; place < bytes.length;) {
    const begin = place + 4;
    place = begin + view.getUint32(begin - 4, true);
    const text = bytes.subarray(begin, place);
    if (text.includes(0)) {
      // Both bindings hand strings on as C's, which end there.
      const what = `a string of tensor '${name}' holds a zero byte`;
      throw new Fault('unsupported', `${what}, which JavaScript's ONNX Runtime cuts`);
    }
    found.push(UTF8.decode(text));
  }
  return found;
}
