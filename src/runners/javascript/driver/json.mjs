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
