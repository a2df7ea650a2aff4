/** Writes the outputs of a run as they come. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { BadInput, wordsOf } from '../common/faults.mjs';

/** @import { Output } from '../common/types.mjs' */
/** @import { Header } from './inputs.mjs' */

/** @typedef {{name: string, dtype: string, shape: number[], file: string}} Joined */

export class OutputWriter {
  #folder;
  #rows;
  #batch;
  #rowsWritten = 0;
  /** What the files hold so far. @type {(Joined | {name: string, kind: string})[]} */
  #outputs = [];

  /**
   * @param {string} folder made with the first outputs
   * @param {Header} inputs
   */
  constructor(folder, { entries, batch }) {
    this.#folder = folder;
    this.#rows = batch === null ? null : entries[0].shape[0];
    this.#batch = batch;
  }

  /** What the record says of the outputs. */
  get facts() {
    return { header: join(this.#folder, 'header.json'), rows: this.#rows };
  }

  /**
   * Append what one run gave to the files; after the last one write `header.json`.
   * Raises BadInput for outputs that do not join along their first axis to the rows of the inputs.
   * @param {Output[]} outputs in the model's order
   */
  append(outputs) {
    try {
      mkdirSync(this.#folder, { recursive: true });
      const rows = this.#rowsOfPart();
      outputs.forEach((output, index) => this.#appendOne(output, index, rows));
      this.#rowsWritten += rows ?? 0;
      if (this.#rows === null || this.#rowsWritten === this.#rows) this.#finish();
    } catch (thrown) {
      if (thrown instanceof BadInput) throw thrown;
      throw new BadInput(`${this.#folder}: the outputs cannot be written: ${wordsOf(thrown)}`);
    }
  }

  /** Return how many rows the next part has; null without a batch. */
  #rowsOfPart() {
    if (this.#rows === null || this.#batch === null) return null;
    return Math.min(this.#batch, this.#rows - this.#rowsWritten);
  }

  /**
   * @param {Output} output
   * @param {number} index
   * @param {number | null} rows
   */
  #appendOne(output, index, rows) {
    if ('kind' in output) {
      this.#outputs[index] = output;
      return;
    }
    const { bytes, ...entry } = output;
    if (rows !== null && entry.shape[0] !== rows) {
      const found = `output '${entry.name}' has shape [${entry.shape}]`;
      throw new BadInput(`${found}, expected a first axis of the batch's ${rows} rows`);
    }
    const file = `output-${index}.bin`;
    const before = this.#outputs[index];
    if (before === undefined) {
      this.#outputs[index] = { ...entry, file };
    } else if ('file' in before && joins(before, entry)) {
      before.shape[0] += entry.shape[0];
    } else {
      throw new BadInput(`output '${entry.name}': its batches have other types or shapes`);
    }
    writeFileSync(join(this.#folder, file), bytes, { flag: before ? 'a' : 'w' });
  }

  #finish() {
    writeFileSync(this.facts.header, `${JSON.stringify({ tensors: this.#outputs })}\n`);
  }
}

/**
 * @param {Joined} before
 * @param {{dtype: string, shape: number[]}} after
 */
function joins(before, after) {
  const rest = (/** @type {number[]} */ shape) => `${shape.length} ${shape.slice(1)}`;
  return before.dtype === after.dtype && rest(before.shape) === rest(after.shape);
}
