/** Reads the session options of `--options`. */

import { BadInput } from '../common/faults.mjs';
import { isObject, short } from '../common/json.mjs';
import { readJson } from './json.mjs';

/** @import { Options } from '../common/types.mjs' */

/** @type {Record<string, {good: (value: unknown) => boolean, wanted: string}>} */
const KEYS = {
  intra_op_num_threads: { good: isWhole, wanted: 'a whole number >= 0' },
  inter_op_num_threads: { good: isWhole, wanted: 'a whole number >= 0' },
  execution_mode: oneOf('sequential', 'parallel'),
  graph_optimization_level: oneOf('disabled', 'basic', 'extended', 'all'),
  enable_cpu_mem_arena: { good: isFlag, wanted: 'true or false' },
  enable_mem_pattern: { good: isFlag, wanted: 'true or false' },
  provider_options: { good: isTexts, wanted: 'an object of texts' },
};
const TEXT = {
  good: (/** @type {unknown} */ value) => typeof value === 'string',
  wanted: 'a text',
};

/**
 * Return the options that are set. Raises BadInput for an unknown key or value.
 * @param {string | undefined} path
 * @returns {Options}
 */
export function readOptions(path) {
  if (path === undefined) return {};
  const given = readJson(path);
  if (!isObject(given)) throw new BadInput(`${path}: expected a JSON object, got ${short(given)}`);
  const options = Object.entries(given).filter(([, value]) => value !== null);
  for (const [key, value] of options) {
    const rule = Object.hasOwn(KEYS, key) ? KEYS[key] : key.includes('.') ? TEXT : null;
    if (rule === null) {
      const known = Object.keys(KEYS).join(', ');
      throw new BadInput(
        `${path}: option '${key}' is unknown: expected ${known}, or a name with a dot`,
      );
    }
    if (!rule.good(value)) {
      throw new BadInput(`${path}: option '${key}' is ${short(value)}, expected ${rule.wanted}`);
    }
  }
  return /** @type {Options} */ (Object.fromEntries(options));
}

/** @param {...string} words */
function oneOf(...words) {
  const good = (/** @type {unknown} */ value) => words.includes(/** @type {string} */ (value));
  return { good, wanted: `one of ${words.join(', ')}` };
}

/** @param {unknown} value */
function isWhole(value) {
  // The bindings take no more than 32 bits.
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 31;
}

/** @param {unknown} value */
function isFlag(value) {
  return typeof value === 'boolean';
}

/** @param {unknown} value */
function isTexts(value) {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string');
}
