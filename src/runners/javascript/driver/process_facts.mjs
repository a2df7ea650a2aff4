/** What the system says of a process. */

import { readFileSync } from 'node:fs';

/**
 * Return the value of a line of /proc/PID/status, or undefined.
 * @param {string} name
 * @param {number | 'self'} process
 */
export function statusLine(name, process = 'self') {
  const text = readFileSync(`/proc/${process}/status`, 'utf8');
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1];
}

/** Return the cores that this process may use, such as `0-3`. */
export function cpusAllowed() {
  return statusLine('Cpus_allowed_list');
}

/**
 * Return the files that are mapped here and whose name holds a mark, sorted.
 * @param {string} mark
 */
export function mappedFiles(mark) {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n');
  const files = lines.map((line) => line.split(/\s+/).slice(5).join(' '));
  return [...new Set(files.filter((file) => file.includes(mark)))].sort();
}
