/** What a run leaves in files: the result's lines, numbers, what the system says of the process. */

import {
  appendFileSync,
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

import { Fault, verdict, wordsOf } from './faults.mjs';
import { Plan, ROLE } from './plan.mjs';

/** @import { Bytes, Entry } from './types.mjs' */

// A read or a write takes 2 GiB at most.
const MOST_BYTES = 2 ** 30;

/**
 * Run a program: `work` gives the facts of the last line. Returns the exit code.
 * @param {string} name
 * @param {(result: Result) => Promise<object>} work
 */
export async function runProgram(name, work) {
  const complain = (/** @type {string} */ words) =>
    process.stderr.write(`${name}: ${words.replace(/\s+/g, ' ').trim()}\n`);
  const path = process.argv[2] ?? '';
  let result;
  try {
    result = new Result(new Plan(readFileSync(path)));
  } catch (thrown) {
    const begin = thrown instanceof Fault ? '' : 'cannot be read: ';
    complain(path ? `${path}: ${begin}${wordsOf(thrown)}` : `usage: transect-runner-${name} PLAN`);
    return 2;
  }
  try {
    result.say({ status: 'ok', ...(await work(result)) });
    return 0;
  } catch (thrown) {
    const { code, message, line } = verdict(thrown);
    complain(code === 3 ? `skipped: ${message}` : message);
    try {
      result.say(line);
    } catch {
      // What was said above is all that can be left.
    }
    return code;
  }
}

export class Result {
  #out;

  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    this.#out = plan.text(ROLE.out) ?? '';
  }

  /**
   * Append a line to the result.
   * @param {object} line
   */
  say(line) {
    appendFileSync(join(this.#out, 'result.jsonl'), `${JSON.stringify(line)}\n`);
  }

  /**
   * Write or append to a file in the folder that an entry names.
   * @param {Entry} folder
   * @param {string} file
   * @param {Bytes} bytes
   * @param {'w' | 'a'} flag
   */
  write({ text }, file, bytes, flag) {
    writeFileSync(join(text, file), bytes, { flag });
  }

  /**
   * Write a file of `out` in pieces, and have the disk have it.
   * @param {string} name
   * @param {Uint8Array[]} pieces
   */
  save(name, pieces) {
    const path = join(this.#out, name);
    try {
      const file = openSync(path, 'w');
      try {
        for (const piece of pieces) {
          for (let place = 0; place < piece.length;) {
            const most = Math.min(piece.length - place, MOST_BYTES);
            place += writeSync(file, piece, place, most);
          }
        }
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    } catch (thrown) {
      throw new Fault('crash', `${path}: the checkpoint cannot be written: ${wordsOf(thrown)}`);
    }
  }

  /** Keep what the system says of this process now. */
  snapshot() {
    for (const name of ['status', 'maps']) {
      const text = readFileSync(`/proc/self/${name}`);
      writeFileSync(join(this.#out, `${name}.txt`), text);
    }
  }

  /** CLOCK_MONOTONIC in nanoseconds. */
  monotonicNs() {
    return Number(process.hrtime.bigint());
  }

  /**
   * Read an entry's data into memory of their own, at whose start any number may lie.
   * @param {Entry} entry
   * @returns {Bytes}
   */
  read({ text, offset, size }) {
    const bytes = new Uint8Array(size);
    const file = openSync(text, 'r');
    for (let place = 0; place < size;) {
      const most = Math.min(size - place, MOST_BYTES);
      const got = readSync(file, bytes, place, most, offset + place);
      if (got === 0) throw new Error(`${text}: ended after ${place} of ${size} bytes`);
      place += got;
    }
    closeSync(file);
    return bytes;
  }
}
