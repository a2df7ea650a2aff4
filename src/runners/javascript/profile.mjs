/** The file of a profile: the binding does not tell its name. */

import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * Return the files that a profile with this prefix may have been written to.
 * @param {string} prefix
 */
export function profileFiles(prefix) {
  const folder = dirname(prefix);
  const names = readdirSync(folder).filter((name) => name.startsWith(`${basename(prefix)}_`));
  return names.map((name) => join(folder, name)).sort();
}
