/** Writes the outputs of a run. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { BadInput, wordsOf } from '../common/faults.mjs';

/** @import { Output } from '../common/types.mjs' */

/**
 * Write each output and `header.json`; return the header. Raises BadInput when that cannot be.
 * @param {string} folder
 * @param {Output[]} outputs
 */
export function writeOutputs(folder, outputs) {
  try {
    mkdirSync(folder, { recursive: true });
    const tensors = outputs.map((output, index) => {
      if ('kind' in output) return output;
      const { bytes, ...entry } = output;
      const file = `output-${index}.bin`;
      writeFileSync(join(folder, file), bytes);
      return { ...entry, file };
    });
    const header = join(folder, 'header.json');
    writeFileSync(header, `${JSON.stringify({ tensors })}\n`);
    return header;
  } catch (thrown) {
    throw new BadInput(`${folder}: the outputs cannot be written: ${wordsOf(thrown)}`);
  }
}
