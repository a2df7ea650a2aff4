/** Tensors of the runner contract: raw little-endian bytes to what ONNX Runtime takes, and back. */

/** @import { Dtype, Input, Numbers, Output } from './types.mjs' */
/** @import { Tensor } from 'onnxruntime-common' */

import { BadInput, Unsupported } from './faults.mjs';

// bfloat16 has no array in JavaScript, float16 travels as its bits.
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bool: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
};

/** All element types of the contract. */
export const DTYPES = [...Object.keys(ARRAYS), 'bfloat16', 'string'];

/**
 * Return the bytes of an element; null for strings, whose length is theirs.
 * @param {Dtype} dtype
 */
export function elementBytes(dtype) {
  if (dtype === 'string') return null;
  return dtype === 'bfloat16' ? 2 : ARRAYS[dtype].BYTES_PER_ELEMENT;
}

/**
 * Return zeros. Raises Unsupported for a type that JavaScript cannot hold.
 * @param {Dtype} dtype
 * @param {number} count
 * @returns {Numbers}
 */
export function arrayOf(dtype, count) {
  if (dtype === 'string' || dtype === 'bfloat16') {
    throw new Unsupported(`ONNX Runtime takes no numbers as ${dtype} from JavaScript`);
  }
  return new ARRAYS[dtype](count);
}

/** @param {readonly number[]} shape */
export function countOf(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/**
 * Return the values of a tensor over its bytes, which must begin at a multiple of 8.
 * Raises BadInput for strings and bools that are none, Unsupported for what JavaScript cannot hold.
 * @param {Omit<Input, 'data'>} tensor
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {string} where
 * @returns {Numbers | string[]}
 */
export function decode({ name, dtype, shape }, bytes, where) {
  if (dtype === 'string') return decodeStrings(name, countOf(shape), bytes, where);
  if (dtype === 'bfloat16') {
    throw new Unsupported(`ONNX Runtime takes no bfloat16 from JavaScript: tensor '${name}'`);
  }
  if (dtype === 'bool') checkFlags(name, bytes, where);
  const Numbers = ARRAYS[dtype];
  return new Numbers(bytes.buffer, bytes.byteOffset, bytes.byteLength / Numbers.BYTES_PER_ELEMENT);
}

/**
 * @param {string} name
 * @param {Uint8Array} bytes
 * @param {string} where
 */
function checkFlags(name, bytes, where) {
  for (const flag of bytes) {
    if (flag > 1) {
      throw new BadInput(
        `${where}: tensor '${name}' is bool: expected bytes of 0 and 1, got ${flag}`,
      );
    }
  }
}

/**
 * @param {string} name
 * @param {number} count
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {string} where
 */
function decodeStrings(name, count, bytes, where) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const wrong = new BadInput(
    `${where}: expected ${count} strings of tensor '${name}', each after its length`,
  );
  const texts = [];
  let place = 0;
  while (place < bytes.length) {
    if (texts.length === count || place + 4 > bytes.length) throw wrong;
    const end = place + 4 + view.getUint32(place, true);
    if (end > bytes.length) throw wrong;
    texts.push(decodeText(utf8, bytes.subarray(place + 4, end), name, where));
    place = end;
  }
  if (texts.length !== count) throw wrong;
  return texts;
}

/**
 * @param {InstanceType<typeof TextDecoder>} utf8
 * @param {Uint8Array} bytes
 * @param {string} name
 * @param {string} where
 */
function decodeText(utf8, bytes, name, where) {
  if (bytes.includes(0)) {
    // Both bindings hand strings on as C's, which end there.
    throw new Unsupported(
      `${where}: a string of tensor '${name}' holds a zero byte, which JavaScript's ONNX Runtime cuts`,
    );
  }
  try {
    return utf8.decode(bytes);
  } catch {
    throw new BadInput(`${where}: a string of tensor '${name}' is no UTF-8`);
  }
}

/**
 * Return one output of a run in the form of its file.
 * @param {string} name
 * @param {Tensor} tensor
 * @returns {Output}
 */
export function outputOf(name, tensor) {
  return { name, dtype: tensor.type, shape: [...tensor.dims], bytes: bytesOf(tensor) };
}

/** @param {Tensor} tensor */
function bytesOf(tensor) {
  const data = tensor.data;
  if (!Array.isArray(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const encoder = new TextEncoder();
  return concatenate(
    data.flatMap((text) => {
      const bytes = encoder.encode(text);
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, bytes.length, true);
      return [length, bytes];
    }),
  );
}

/** @param {Uint8Array[]} pieces */
function concatenate(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let place = 0;
  for (const piece of pieces) {
    whole.set(piece, place);
    place += piece.length;
  }
  return whole;
}
