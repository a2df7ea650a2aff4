/** JSON files, whatever is in them. */

import { readFileSync } from 'node:fs';

import { BadInput, wordsOf } from '../common/faults.mjs';

/**
 * Raises BadInput naming the file.
 * @param {string} path
 * @returns {unknown}
 */
export function readJson(path) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)));
  } catch (thrown) {
    throw new BadInput(`${path}: expected a JSON file: ${wordsOf(thrown)}`);
  }
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Return how a value is written, cut.
 * @param {unknown} value
 */
export function short(value) {
  return String(JSON.stringify(value)).slice(0, 200);
}
