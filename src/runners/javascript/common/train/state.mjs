/** The state of a training: from a file and into one. */

/** @import { Numbers } from '../types.mjs' */
/** @import { Manifest, State } from './types.mjs' */

import { BadInput } from '../faults.mjs';
import { counterOf } from './manifest.mjs';
import { readSafetensors, writeSafetensors } from './safetensors.mjs';

const STEP_GRAPH = 'step_graph';

/**
 * Return the state that a file holds. Raises BadInput for one that is no state of this step.
 * @param {Uint8Array<ArrayBuffer>} file
 * @param {Manifest} manifest
 * @param {string} where the file's name
 * @returns {State}
 */
export function readState(file, manifest, where) {
  const { metadata, tensors } = readSafetensors(file, where);
  if (metadata[STEP_GRAPH] !== manifest.step_graph) {
    throw new BadInput(
      `${where}: is the state of the step ${metadata[STEP_GRAPH] ?? '(none is named)'}, ` +
        `expected ${manifest.step_graph}`,
    );
  }
  /** @type {State} */
  const state = new Map();
  for (const { name, dtype, shape } of manifest.state) {
    const found = tensors.get(name);
    const wanted = `'${name}' of ${dtype}[${shape}]`;
    if (!found) throw new BadInput(`${where}: has no tensor ${wanted}`);
    if (found.dtype !== dtype || `${found.shape}` !== `${shape}`) {
      throw new BadInput(`${where}: has ${found.dtype}[${found.shape}], expected ${wanted}`);
    }
    state.set(name, found.data);
  }
  const unknown = [...tensors.keys()].find((name) => !state.has(name));
  if (unknown !== undefined) {
    throw new BadInput(`${where}: has a tensor '${unknown}', which the step does not know`);
  }
  const bad = notFinite(state, manifest);
  if (bad !== undefined) {
    throw new BadInput(`${where}: tensor '${bad}' holds a number that is not finite`);
  }
  const step = stepOf(state, manifest);
  if (step < 0 || !Number.isSafeInteger(step)) {
    throw new BadInput(`${where}: is of step ${step}, expected a number of updates`);
  }
  return state;
}

/**
 * Return a state's file in pieces; the numbers are not copied.
 * @param {State} state
 * @param {Manifest} manifest
 */
export function writeState(state, manifest) {
  const tensors = manifest.state.map(({ name, dtype, shape }) => ({
    ...{ name, dtype, shape },
    data: numbersOf(state, name),
  }));
  return writeSafetensors({ [STEP_GRAPH]: manifest.step_graph }, tensors);
}

/**
 * Return how many updates were done.
 * @param {State} state
 * @param {Manifest} manifest
 */
export function stepOf(state, manifest) {
  return Number(numbersOf(state, counterOf(manifest))[0]);
}

/**
 * Return the name of a tensor that holds a number which is not finite, or undefined.
 * @param {State} state
 * @param {Manifest} manifest
 */
export function notFinite(state, manifest) {
  return manifest.state.find(({ name, dtype }) => !areFinite(numbersOf(state, name), dtype))?.name;
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
function numbersOf(state, name) {
  return /** @type {Numbers} */ (state.get(name));
}
