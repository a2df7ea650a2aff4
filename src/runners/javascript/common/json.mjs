/** Values that came as JSON, whatever they are. */

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

/**
 * @param {unknown} value
 * @returns {value is number[]}
 */
export function areSizes(value) {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}
