/** What the driver and its page send each other. */

/** @import { Training } from '../javascript/common/train/types.mjs' */
/** @import { Dtype, Limits, Options, Output } from '../javascript/common/types.mjs' */

/**
 * @typedef {object} Job what the page is to do; the files of it are at `file/NAME`
 * @property {'latency' | 'load' | 'case' | 'train'} mode
 * @property {string} model its path, for messages
 * @property {string} provider
 * @property {Options} options
 * @property {{name: string, dtype: Dtype, shape: number[]}[]} inputs tensor I is the file `input-I`
 * @property {number | null} batch
 * @property {Limits} limits
 * @property {boolean} profile
 * @property {string[]} externals names beside the model; name I is the file `external-I`
 * @property {number} sessions
 * @property {number[]} arrivals nanoseconds from the start
 * @property {number} limitNs what is not begun then stays unserved
 * @property {TrainJob} [train]
 *
 * @typedef {Omit<Training, 'data' | 'order' | 'state' | 'seed'> & {seed: string, graphs: Graphs}}
 *   TrainJob the files are `step`, `accumulate`, `state` and `order`, data tensor I is `input-I`
 * @typedef {Record<'step' | 'accumulate', string>} Graphs their paths, for messages
 *
 * @typedef {{record: object, profile?: string, diverged?: string | null}} Done
 * @typedef {{fault: {kind: string, message: string}}} Fault
 */

/**
 * Return outputs as one piece: length of the description, description, bytes.
 * @param {Output[]} outputs
 */
export function packOutputs(outputs) {
  const described = outputs.map((output) => {
    if ('kind' in output) return output;
    const { bytes, ...entry } = output;
    return { ...entry, length: bytes.length };
  });
  const text = new TextEncoder().encode(JSON.stringify(described));
  const blobs = outputs.flatMap((output) => ('kind' in output ? [] : [output.bytes]));
  return [Uint32Array.of(text.length), text, ...blobs];
}

/**
 * @param {Uint8Array} packed
 * @returns {Output[]}
 */
export function unpackOutputs(packed) {
  const length = new DataView(packed.buffer, packed.byteOffset).getUint32(0, true);
  const described = JSON.parse(new TextDecoder().decode(packed.subarray(4, 4 + length)));
  let place = 4 + length;
  return described.map((/** @type {any} */ { length: size, ...entry }) => {
    if ('kind' in entry) return entry;
    place += size;
    return { ...entry, bytes: packed.subarray(place - size, place) };
  });
}
