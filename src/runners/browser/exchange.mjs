/** Hands jobs to the page, one at a time, and takes what it tells of them. */

import { unpack } from '../javascript/common/faults.mjs';
import { unpackOutputs } from './wire.mjs';

/** @import { Output } from '../javascript/common/types.mjs' */
/** @import { Done, Fault, Job } from './wire.mjs' */

/**
 * @typedef {object} Order a job and who hears of it
 * @property {Job} job
 * @property {Map<string, string>} files path by name
 * @property {() => void} first the first result is there
 * @property {(outputs: Output[]) => void} outputs
 * @property {() => void} measured
 * @property {(file: Buffer) => void} save a checkpoint
 */

export class Exchange {
  /** @type {((job: Job) => void) | null} */
  #asker = null;
  /** @type {Order & {done: (done: Done) => void, failed: (thrown: unknown) => void} | null} */
  #order = null;
  #wasHandedOut = false;
  /** Whether the page has asked for work. */
  isOpen = false;

  /**
   * Have a job done; return what the page says at its end. Raises its fault.
   * @param {Order} order
   * @returns {Promise<Done>}
   */
  run(order) {
    return new Promise((done, failed) => {
      this.#order = { ...order, done, failed };
      this.#wasHandedOut = false;
      this.#match();
    });
  }

  /** Return the next job, when there is one. @returns {Promise<Job>} */
  nextJob() {
    this.isOpen = true;
    return new Promise((resolve) => {
      this.#asker = resolve;
      this.#match();
    });
  }

  #match() {
    if (!this.#asker || !this.#order || this.#wasHandedOut) return;
    this.#asker(this.#order.job);
    this.#asker = null;
    this.#wasHandedOut = true;
  }

  /**
   * Return the path of a file of the job.
   * @param {string} name
   */
  file(name) {
    return this.#order?.files.get(name);
  }

  /**
   * Take what the page tells.
   * @param {string} what
   * @param {Buffer} body
   */
  told(what, body) {
    if (what === 'log') process.stderr.write(body);
    const order = this.#order;
    // What is told before a job is handed out is of the one before, which was given up here.
    if (!order || !this.#wasHandedOut) return;
    try {
      if (what === 'first') order.first();
      else if (what === 'outputs') order.outputs(unpackOutputs(body));
      else if (what === 'measured') order.measured();
      else if (what === 'checkpoint') order.save(body);
      else if (what === 'done') this.#finish(JSON.parse(body.toString()));
    } catch (thrown) {
      order.failed(thrown);
    }
  }

  /** @param {Done | Fault} end */
  #finish(end) {
    const order = this.#order;
    this.#order = null;
    if ('fault' in end) order?.failed(unpack(end.fault));
    else order?.done(end);
  }
}
