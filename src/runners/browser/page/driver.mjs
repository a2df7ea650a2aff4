/** The driver, as its page and workers reach it. */

import { Plan } from '../../javascript/plan.mjs';

/** @import { Bytes, Entry } from '../../javascript/types.mjs' */

const BASE = new URL('../../', import.meta.url);

/** Where the files of onnxruntime-web are. */
export const ORT = new URL('node_modules/onnxruntime-web/dist/', BASE).href;

/**
 * Return an address below the driver's.
 * @param {string} path
 */
export function address(path) {
  return new URL(path, BASE).href;
}

/** @param {string} path */
export async function fetched(path) {
  const response = await fetch(address(path));
  if (!response.ok) throw new Error(`the driver has no ${path}: ${response.status}`);
  return response;
}

/** @param {string} path */
export async function bytesAt(path) {
  return new Uint8Array(await (await fetched(path)).arrayBuffer());
}

/**
 * Tell the driver; return its answer.
 * @param {string} what
 * @param {BodyInit} [body]
 */
export async function tell(what, body) {
  return (await fetch(address(what), { method: 'POST', body })).text();
}

export async function readPlan() {
  return new Plan(await bytesAt('plan'));
}

/** Tell the driver that this page is there, by a question whose answer never comes. */
export function holdLine() {
  const line = new AbortController();
  void fetch(address('alive'), { signal: line.signal }).catch(() => {});
  return line;
}

/** Where data come from and results go, in a page. */
export class Driver {
  #ahead;

  /**
   * @param {Plan} plan
   * @param {number} epoch the page's time origin, in milliseconds
   */
  constructor(plan, epoch) {
    this.plan = plan;
    this.#ahead = performance.timeOrigin - epoch;
  }

  /** @param {Entry} entry */
  read({ index }) {
    return bytesAt(`data/${index}`);
  }

  /**
   * @param {Entry} folder
   * @param {string} file
   * @param {Bytes} bytes
   * @param {'w' | 'a'} flag
   */
  write({ index }, file, bytes, flag) {
    return tell(`${flag}/${index}/${file}`, bytes);
  }

  /**
   * @param {string} file
   * @param {Bytes[]} pieces
   */
  save(file, pieces) {
    return tell(`save/-/${file}`, new Blob(pieces));
  }

  /** @param {object} line */
  say(line) {
    return tell('say', JSON.stringify(line));
  }

  async monotonicNs() {
    return Number(await tell('clock'));
  }

  /** The page's clock. Apart from its origin: since 1970 is too many nanoseconds for a number. */
  sharedNs() {
    return (this.#ahead + performance.now()) * 1e6;
  }

  snapshot() {
    return tell('snapshot');
  }
}
