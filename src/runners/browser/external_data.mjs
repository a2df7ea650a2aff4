/** Files beside a model that hold its weights: a page has to be told of each. */

import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Return the names, relative to the model's folder, of the files that the model names.
 *
 * A name that is in the model by chance costs a download and nothing else.
 * @param {string} model
 */
export function externalFiles(model) {
  const bytes = readFileSync(model);
  // The key under which ONNX keeps the name (TensorProto.external_data).
  if (!bytes.includes('location')) return [];
  const folder = dirname(model);
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => bytes.includes(name) && statSync(join(folder, name)).isFile());
}
