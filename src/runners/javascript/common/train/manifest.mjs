/** The manifest of a portable training step: docs/portable-training-step.md. */

/** @import { Graph, Manifest } from './types.mjs' */

import { BadInput } from '../faults.mjs';
import { areSizes, isObject, short } from '../json.mjs';
import { DTYPES } from '../tensors.mjs';

const FORMAT = 'transect-portable-step';
const VERSION = 1;
const COUNTER = 'counter';

/**
 * Return what was read of manifest.json. Raises BadInput that names what cannot be used.
 * @param {unknown} given
 * @param {string} where the file's name
 * @returns {Manifest}
 */
export function checkManifest(given, where) {
  const wrong = (/** @type {string} */ what) => new BadInput(`${where}: ${what}`);
  if (!isObject(given) || given.format !== FORMAT || given.version !== VERSION) {
    const { format, version } = isObject(given) ? given : {};
    throw wrong(
      `expected format "${FORMAT}", version ${VERSION}; got ${short(format)}, ${short(version)}`,
    );
  }
  for (const key of ['step_graph', 'state_file']) {
    if (typeof given[key] !== 'string') throw wrong(`"${key}" is ${short(given[key])}, no text`);
  }
  listOf(given, 'data', isDataTensor, wrong);
  listOf(given, 'hyper', isHyper, wrong);
  listOf(given, 'state', isStateTensor, wrong);
  listOf(given, 'metrics', isTyped, wrong);
  if (given.seed !== null && !isTyped(given.seed)) throw wrong(`"seed" is ${short(given.seed)}`);
  const graphs = isObject(given.graphs) ? given.graphs : {};
  if (!isGraph(graphs.step)) throw wrong(`"graphs" has no step: ${short(graphs.step)}`);
  for (const [name, graph] of Object.entries(graphs)) {
    if (!isGraph(graph)) throw wrong(`graph '${name}' is ${short(graph)}`);
  }
  const manifest = /** @type {Manifest} */ (/** @type {unknown} */ (given));
  checkMeaning(manifest, wrong);
  return manifest;
}

/**
 * @param {Manifest} manifest
 * @param {(what: string) => BadInput} wrong
 */
function checkMeaning(manifest, wrong) {
  const { data, hyper, seed, state, metrics, graphs } = manifest;
  const named = [...data, ...hyper, ...(seed ? [seed] : []), ...state];
  const names = named.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw wrong(`'${twice}' is there twice`);
  const counters = state.filter(({ role }) => role === COUNTER);
  const [{ dtype, shape }] = [...counters, { dtype: '', shape: [] }];
  if (counters.length !== 1 || dtype !== 'int64' || shape.length) {
    throw wrong(`expected one ${COUNTER} in "state", an int64 scalar; got ${short(counters)}`);
  }
  if (metrics.length === 0) throw wrong('"metrics" is empty: the first is the loss');
  for (const graph of [graphs.step, ...(graphs.accumulate ? [graphs.accumulate] : [])]) {
    const unknown = graph.inputs.find((name) => !names.includes(name));
    if (unknown !== undefined) throw wrong(`${graph.file} takes '${unknown}', which nothing gives`);
    const missing = metrics.find(({ name }) => !graph.outputs.includes(name));
    if (missing) throw wrong(`${graph.file} gives no '${missing.name}'`);
  }
  const stays = state.find(({ next }) => next !== null && !graphs.step.outputs.includes(next));
  if (stays) throw wrong(`${graphs.step.file} gives no '${stays.next}'`);
}

/**
 * @param {Record<string, unknown>} given
 * @param {string} key
 * @param {(entry: unknown) => boolean} isGood
 * @param {(what: string) => BadInput} wrong
 */
function listOf(given, key, isGood, wrong) {
  const list = given[key];
  if (!Array.isArray(list)) throw wrong(`"${key}" is ${short(list)}, expected a list`);
  const bad = list.find((entry) => !isGood(entry));
  if (bad !== undefined) throw wrong(`"${key}" has ${short(bad)}`);
}

/**
 * @param {unknown} entry
 * @returns {entry is Record<string, unknown>}
 */
function isTyped(entry) {
  return isObject(entry) && typeof entry.name === 'string' && DTYPES.includes(String(entry.dtype));
}

/** @param {unknown} entry */
function isDataTensor(entry) {
  const isSize = (/** @type {unknown} */ size) => typeof size === 'string' || areSizes([size]);
  return (
    isTyped(entry) &&
    Array.isArray(entry.shape) &&
    entry.shape.length > 0 &&
    entry.shape.every(isSize)
  );
}

/** @param {unknown} entry */
function isHyper(entry) {
  return isTyped(entry) && entry.dtype === 'float64' && Number.isFinite(entry.default);
}

/** @param {unknown} entry */
function isStateTensor(entry) {
  return (
    isTyped(entry) &&
    typeof entry.role === 'string' &&
    areSizes(entry.shape) &&
    (entry.next === null || typeof entry.next === 'string')
  );
}

/**
 * @param {unknown} graph
 * @returns {graph is Graph}
 */
function isGraph(graph) {
  const areNames = (/** @type {unknown} */ list) =>
    Array.isArray(list) && list.every((name) => typeof name === 'string');
  return (
    isObject(graph) &&
    typeof graph.file === 'string' &&
    areNames(graph.inputs) &&
    areNames(graph.outputs)
  );
}

/**
 * Return the name of the tensor that counts the updates done.
 * @param {Manifest} manifest
 */
export function counterOf({ state }) {
  return state.find(({ role }) => role === COUNTER)?.name ?? '';
}
