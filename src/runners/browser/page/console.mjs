/** ONNX Runtime in WebAssembly logs to the console, and prints its profile there. */

import { tell } from './driver.mjs';

/** @type {string[]} */
let lines = [];
/** @type {string[] | null} */
let printed = null;

/** Keep what is said on this thread's console. */
export function listen() {
  for (const level of /** @type {const} */ (['debug', 'info', 'log', 'warn', 'error'])) {
    console[level] = (/** @type {unknown[]} */ ...words) => {
      // What is printed, not logged, is the profile.
      const kept = level === 'log' && printed ? printed : lines;
      kept.push(words.join(' '));
    };
  }
}

/** Give the driver what was said so far. */
export async function tellLog() {
  const said = lines;
  lines = [];
  if (said.length) await tell('log', `${said.join('\n')}\n`);
}

/**
 * Return what is printed while `work` runs.
 * @param {() => void} work
 */
export function printedBy(work) {
  printed = [];
  try {
    work();
    return printed.join('\n');
  } finally {
    printed = null;
  }
}
