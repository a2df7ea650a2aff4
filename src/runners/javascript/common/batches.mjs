/** Rows of the inputs, cut into batches. */

/** @import { Feed, Input } from './types.mjs' */

import { countOf } from './tensors.mjs';

/**
 * Return rows [start, start + count) of each input, fewer at the end; numbers are not copied.
 * @param {Feed} feed
 * @param {number} start
 * @param {number} count
 * @returns {Feed}
 */
export function rows(feed, start, count) {
  return feed.map((input) => rowsOf(input, start, Math.min(start + count, input.shape[0])));
}

/**
 * @param {Input} input
 * @param {number} start
 * @param {number} end
 * @returns {Input}
 */
function rowsOf(input, start, end) {
  const size = countOf(input.shape.slice(1));
  const [from, to] = [start * size, end * size];
  const data = Array.isArray(input.data)
    ? input.data.slice(from, to)
    : input.data.subarray(from, to);
  return { ...input, shape: [end - start, ...input.shape.slice(1)], data };
}

/**
 * Return the full batches, the rest is left out; without a batch one, of all.
 * @param {Feed} feed
 * @param {number | null} batch
 */
export function fullBatches(feed, batch) {
  if (batch === null) return [feed];
  const all = allBatches(feed, batch);
  return all.slice(0, Math.floor(feed[0].shape[0] / batch));
}

/**
 * Return all batches, the last one perhaps partial; without a batch one, of all.
 * @param {Feed} feed
 * @param {number | null} batch
 */
export function allBatches(feed, batch) {
  if (batch === null) return [feed];
  const found = [];
  for (let start = 0; start < feed[0].shape[0]; start += batch)
    found.push(rows(feed, start, batch));
  return found;
}
