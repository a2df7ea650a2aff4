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

// Strings, which may hold any of the other characters, and what begins and ends.
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * Return a key that an object has twice, or undefined: `JSON.parse` takes the last one silently.
 * @param {string} text an object in valid JSON; those in it are not looked at
 */
export function keyTwice(text) {
  const keys = new Set();
  let depth = 0;
  let last = '';
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (token === ':' && depth === 1) {
      const key = JSON.parse(last);
      if (keys.has(key)) return /** @type {string} */ (key);
      keys.add(key);
    }
    last = token;
  }
  return undefined;
}
