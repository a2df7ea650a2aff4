/** Files of tensors in the format safetensors: a JSON header behind its length, then the numbers. */

/** @import { Dtype, Numbers } from '../types.mjs' */

import { BadInput, wordsOf } from '../faults.mjs';
import { areSizes, isObject, keyTwice, short } from '../json.mjs';
import { countOf, decode, elementBytes } from '../tensors.mjs';

/** @typedef {{dtype: Dtype, shape: number[], begin: number, end: number}} Place in the numbers */
/** @typedef {{name: string, dtype: Dtype, shape: number[], data: Numbers}} Written */

/** @type {Partial<Record<Dtype, string>>} */
const LABELS = {
  float64: 'F64',
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  int64: 'I64',
  int32: 'I32',
  int16: 'I16',
  int8: 'I8',
  uint64: 'U64',
  uint32: 'U32',
  uint16: 'U16',
  uint8: 'U8',
  bool: 'BOOL',
};
const DTYPES = new Map(
  Object.entries(LABELS).map(([dtype, label]) => [label, /** @type {Dtype} */ (dtype)]),
);
const HEAD = 8;
// The format's own limit.
const LONGEST_HEADER = 100_000_000;
const METADATA = '__metadata__';

/**
 * Return the metadata and the tensors of a file, each in memory of its own. Any valid file is read;
 * raises BadInput naming the file for one that is not, before room is made for a tensor.
 * @param {Uint8Array<ArrayBuffer>} file
 * @param {string} where the file's name
 */
export function readSafetensors(file, where) {
  const { metadata, places, start } = readHeader(file, where);
  /** @type {Map<string, Written>} */
  const tensors = new Map();
  for (const [name, { dtype, shape, begin, end }] of places) {
    // The format promises no place at which numbers may lie.
    const bytes = file.slice(start + begin, start + end);
    const data = /** @type {Numbers} */ (decode({ name, dtype, shape }, bytes, where));
    tensors.set(name, { name, dtype, shape, data });
  }
  return { metadata, tensors };
}

/**
 * @param {Uint8Array<ArrayBuffer>} file
 * @param {string} where
 */
function readHeader(file, where) {
  const wrong = (/** @type {string} */ what) =>
    new BadInput(`${where}: expected a safetensors file, ${what}`);
  if (file.length < HEAD) throw wrong(`got ${file.length} bytes`);
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  if (length > Math.min(LONGEST_HEADER, file.length - HEAD)) {
    throw wrong(`got a header of ${length} bytes in a file of ${file.length}`);
  }
  const start = HEAD + length;
  const { [METADATA]: metadata = {}, ...entries } = parse(file.subarray(HEAD, start), wrong);
  if (!isObject(metadata) || !Object.values(metadata).every((text) => typeof text === 'string')) {
    throw wrong(`${METADATA} is no object of texts`);
  }
  /** @type {Map<string, Place>} */
  const places = new Map();
  for (const [name, entry] of Object.entries(entries)) {
    places.set(name, placeOf(name, entry, wrong));
  }
  checkCover([...places], file.length - start, wrong);
  return { metadata: /** @type {Record<string, string>} */ (metadata), places, start };
}

/**
 * @param {Uint8Array} header
 * @param {(what: string) => BadInput} wrong
 */
function parse(header, wrong) {
  let parsed, text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(header);
    parsed = JSON.parse(text);
  } catch (thrown) {
    throw wrong(`its header is no JSON: ${wordsOf(thrown)}`);
  }
  if (!isObject(parsed)) throw wrong('its header is no object');
  const twice = keyTwice(text);
  if (twice !== undefined) throw wrong(`'${twice}' is there twice`);
  return parsed;
}

/**
 * @param {string} name
 * @param {unknown} entry
 * @param {(what: string) => BadInput} wrong
 * @returns {Place}
 */
function placeOf(name, entry, wrong) {
  const { dtype: label, shape, data_offsets: offsets } = isObject(entry) ? entry : {};
  const dtype = DTYPES.get(String(label));
  if (!dtype || !areSizes(shape) || !areSizes(offsets) || offsets.length !== 2) {
    throw wrong(`tensor '${name}' is ${short(entry)}`);
  }
  const [begin, end] = offsets;
  // A product beyond 2^53 is not exact, but far from any length.
  const bytes = countOf(shape) * Number(elementBytes(dtype));
  if (end - begin !== bytes) {
    throw wrong(
      `tensor '${name}' of ${label}[${shape}] takes ${bytes} bytes, has ${begin} to ${end}`,
    );
  }
  return { dtype, shape, begin, end };
}

/**
 * Raise unless the tensors lie one behind the other, in whatever order, and fill the file.
 * @param {[string, Place][]} places
 * @param {number} length
 * @param {(what: string) => BadInput} wrong
 */
function checkCover(places, length, wrong) {
  places.sort(([, one], [, other]) => one.begin - other.begin || one.end - other.end);
  let end = 0;
  for (const [name, place] of places) {
    if (place.begin !== end) {
      throw wrong(`tensor '${name}' begins at ${place.begin}, expected ${end}: overlap or gap`);
    }
    end = place.end;
  }
  if (end !== length) throw wrong(`its tensors take ${end} bytes, ${length} are there`);
}

/**
 * Return a file in pieces: its header, and behind it the bytes of each tensor, which are not copied.
 * The same tensors are the same bytes in every language.
 * @param {Record<string, string>} metadata
 * @param {Written[]} tensors
 * @returns {Uint8Array<ArrayBuffer>[]}
 */
export function writeSafetensors(metadata, tensors) {
  // As text: an object would have names that are numbers before the others.
  const entries = [`"${METADATA}":${JSON.stringify(metadata)}`];
  let end = 0;
  for (const { name, dtype, shape, data } of tensors) {
    const begin = end;
    end += data.byteLength;
    const entry = { dtype: LABELS[dtype], shape, data_offsets: [begin, end] };
    entries.push(`${JSON.stringify(name)}:${JSON.stringify(entry)}`);
  }
  const text = new TextEncoder().encode(`{${entries.join()}}`);
  const length = 8 * Math.ceil(text.length / 8);
  const head = new Uint8Array(HEAD + length).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true);
  head.set(text, HEAD);
  return [head, ...tensors.map(({ data }) => bytesOf(data))];
}

/** @param {Numbers} data */
function bytesOf({ buffer, byteOffset, byteLength }) {
  return new Uint8Array(/** @type {ArrayBuffer} */ (buffer), byteOffset, byteLength);
}
