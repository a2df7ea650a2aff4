/** Writes the state of a training such that a file of it is whole, whatever happens meanwhile. */

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { wordsOf } from '../common/faults.mjs';

/**
 * Write a file in pieces beside its place, let the disk have it, then rename it to there.
 * @param {string} path
 * @param {Uint8Array[]} pieces
 */
export function writeCheckpoint(path, pieces) {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path)}.${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    withFile(temporary, 'w', (file) => {
      for (const piece of pieces) writeWhole(file, piece);
      fsyncSync(file);
    });
    renameSync(temporary, path);
    // The name is the folder's: it too must be on the disk.
    withFile(folder, 'r', fsyncSync);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw new Error(`${path}: the checkpoint cannot be written: ${wordsOf(thrown)}`);
  }
}

/**
 * Remove temporary files of this checkpoint that killed runs left; of runs that go on they stay.
 * @param {string} path
 */
export function removeLeft(path) {
  const folder = dirname(path);
  const begin = `.${basename(path)}.`;
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const number = name.startsWith(begin) ? name.slice(begin.length) : '';
    const isLeft = /^\d+$/.test(number) && !existsSync(`/proc/${number}`);
    if (isLeft) rmSync(join(folder, name), { force: true });
  }
}

/**
 * @param {string} path
 * @param {string} flags
 * @param {(file: number) => void} work
 */
function withFile(path, flags, work) {
  const file = openSync(path, flags);
  try {
    work(file);
  } finally {
    closeSync(file);
  }
}

/**
 * @param {number} file
 * @param {Uint8Array} bytes
 */
function writeWhole(file, bytes) {
  // A write takes 2 GiB at most, and may take less.
  for (let place = 0; place < bytes.length;) {
    place += writeSync(file, bytes, place, Math.min(bytes.length - place, 2 ** 30));
  }
}
