/** Reads the inputs of a run: `header.json` and the files that it names. */

import { openSync, closeSync, readSync, statSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { BadInput, Unsupported, wordsOf } from '../common/faults.mjs';
import { areSizes, isObject, short } from '../common/json.mjs';
import { DTYPES, countOf, decode, elementBytes } from '../common/tensors.mjs';
import { readJson } from './json.mjs';

/** @import { Dtype, Feed } from '../common/types.mjs' */

/**
 * @typedef {{name: string, dtype: Dtype, shape: number[], path: string, bytes: number}} Entry
 * @typedef {{entries: Entry[], batch: number | null}} Header
 */

// The same in all languages: twice this and the most seconds fit into 64 bits.
const LATEST_NS = 2n ** 60n;

/**
 * Return what `folder/header.json` names, after a look at each file's size.
 * Raises BadInput naming file and entry.
 * @param {string} folder
 * @returns {Header}
 */
export function readHeader(folder) {
  const path = join(folder, 'header.json');
  const described = readJson(path);
  if (!isObject(described) || !Array.isArray(described.tensors)) {
    throw new BadInput(`${path}: expected {"tensors": [...]}`);
  }
  const entries = described.tensors.map((entry) => readEntry(path, folder, entry));
  const names = entries.map((entry) => entry.name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new BadInput(`${path}: tensor '${twice}' is there twice`);
  const batch = described.batch ?? null;
  if (batch !== null) checkBatch(path, entries, batch);
  return { entries, batch: /** @type {number | null} */ (batch) };
}

/**
 * @param {string} header
 * @param {Entry[]} entries
 * @param {unknown} batch
 */
function checkBatch(header, entries, batch) {
  const rows = [...new Set(entries.map(({ shape }) => shape[0] ?? 0))];
  const good =
    Number.isInteger(batch) && rows.length === 1 && 1 <= Number(batch) && Number(batch) <= rows[0];
  if (good) return;
  throw new BadInput(
    `${header}: needs N >= batch >= 1 rows, the same N in every tensor; ` +
      `got batch ${JSON.stringify(batch)} and [${rows}] rows`,
  );
}

/**
 * @param {string} header
 * @param {string} folder
 * @param {unknown} entry
 * @returns {Entry}
 */
function readEntry(header, folder, entry) {
  const { name, dtype, shape, file, kind } = isObject(entry) ? entry : {};
  if (typeof kind === 'string') {
    throw new Unsupported(
      `${header}: input '${name}' is ${kind}, and JavaScript's ONNX Runtime takes tensors only`,
    );
  }
  if (typeof name !== 'string' || typeof file !== 'string' || file.includes('\0')) {
    throw new BadInput(
      `${header}: expected tensors with name, dtype, shape, file, got ${short(entry)}`,
    );
  }
  if (typeof dtype !== 'string' || !DTYPES.includes(dtype)) {
    throw new BadInput(
      `${header}: tensor '${name}' is ${short(dtype)}, expected one of ${DTYPES.join(', ')}`,
    );
  }
  if (!areSizes(shape)) {
    throw new BadInput(
      `${header}: tensor '${name}' has shape ${short(shape)}, expected sizes >= 0`,
    );
  }
  const path = resolve(folder, file);
  const bytes = checkSize(path, name, /** @type {Dtype} */ (dtype), shape);
  return { name, dtype: /** @type {Dtype} */ (dtype), shape, path, bytes };
}

/**
 * @param {string} path
 * @param {string} name
 * @param {Dtype} dtype
 * @param {number[]} shape
 */
function checkSize(path, name, dtype, shape) {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts?.isFile())
    throw new BadInput(`${path}: tensor '${name}' cannot be read: no such file`);
  const size = elementBytes(dtype);
  // A string takes four bytes or more, and how many only its file tells.
  const wanted = countOf(shape) * (size ?? 4);
  if (size === null ? facts.size < wanted : facts.size !== wanted) {
    const least = size === null ? 'at least ' : '';
    throw new BadInput(
      `${path}: holds ${facts.size} bytes, ` +
        `tensor '${name}' of shape [${shape}] in ${dtype} takes ${least}${wanted}`,
    );
  }
  return facts.size;
}

/**
 * Read the tensors of a header. Raises BadInput, Unsupported for what JavaScript cannot hold.
 * @param {Entry[]} entries
 * @returns {Feed}
 */
export function readTensors(entries) {
  return entries.map(({ name, dtype, shape, path, bytes }) => {
    const data = decode({ name, dtype, shape }, readTensor(path, name, bytes), path);
    return { name, dtype, shape, data };
  });
}

/**
 * @param {string} path
 * @param {string} name
 * @param {number} size
 */
function readTensor(path, name, size) {
  try {
    return readBytes(path, size);
  } catch (thrown) {
    if (thrown instanceof RangeError) throw thrown;
    throw new BadInput(`${path}: tensor '${name}' cannot be read: ${wordsOf(thrown)}`);
  }
}

/**
 * Read a whole file into memory of its own, at whose start any number may lie.
 * @param {string} path
 * @param {number} size
 */
export function readBytes(path, size) {
  const bytes = new Uint8Array(size);
  const file = openSync(path, 'r');
  try {
    let place = 0;
    while (place < size) {
      // A read takes 2 GiB at most.
      const got = readSync(file, bytes, place, Math.min(size - place, 2 ** 30), place);
      if (got === 0) throw new Error(`it ended after ${place} of ${size} bytes`);
      place += got;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

/**
 * Return when requests arrive, nanoseconds from the start. Raises BadInput.
 * @param {string} path
 */
export function readArrivals(path) {
  let raw;
  try {
    raw = readFileSync(path);
  } catch (thrown) {
    throw new BadInput(`${path}: cannot be read: ${wordsOf(thrown)}`);
  }
  if (raw.length === 0 || raw.length % 8) {
    throw new BadInput(`${path}: expected int64 arrival times, got ${raw.length} bytes`);
  }
  const times = new Float64Array(raw.length / 8);
  for (let index = 0; index < times.length; index++) {
    const time = raw.readBigInt64LE(8 * index);
    times[index] = Number(time);
    if (times[index] < (index ? times[index - 1] : 0) || time > LATEST_NS) {
      throw new BadInput(
        `${path}: expected arrival times of 0 to 2^60 ns that do not fall, got ${time} at ${index}`,
      );
    }
  }
  return times;
}
