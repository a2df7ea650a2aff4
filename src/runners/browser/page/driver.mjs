/** The driver, as its page and workers reach it. */

import { pack } from '../../javascript/common/faults.mjs';
import { packOutputs } from '../wire.mjs';

/** @import { Output } from '../../javascript/common/types.mjs' */
/** @import { Done, Fault, Job } from '../wire.mjs' */

const BASE = new URL('../../', import.meta.url);

/** Where the files of onnxruntime-web are. */
export const ORT = new URL('node_modules/onnxruntime-web/dist/', BASE).href;

/** Wait for the next job. @returns {Promise<Job>} */
export async function nextJob() {
  return (await fetch(new URL('job', BASE))).json();
}

/**
 * Return the address of a file of the job.
 * @param {string} name
 */
export function address(name) {
  return new URL(`file/${name}`, BASE).href;
}

/**
 * Return the bytes of a file of the job.
 * @param {string} name
 */
export async function bytesOf(name) {
  const response = await fetch(address(name));
  if (!response.ok) throw new Error(`the driver has no ${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * @param {'first' | 'measured' | 'log' | 'outputs' | 'checkpoint' | 'done'} what
 * @param {BodyInit} [body]
 */
async function tell(what, body) {
  await fetch(new URL(`told/${what}`, BASE), { method: 'POST', body });
}

export const told = {
  firstResult: () => tell('first'),
  measured: () => tell('measured'),
  /** @param {string} text */
  log: (text) => tell('log', text),
  /** @param {Output[]} outputs */
  outputs: (outputs) => tell('outputs', new Blob(/** @type {BlobPart[]} */ (packOutputs(outputs)))),
  /** @param {BlobPart[]} pieces of a state's file */
  checkpoint: (pieces) => tell('checkpoint', new Blob(pieces)),
  /** @param {Done} end */
  done: (end) => tell('done', JSON.stringify(end)),
  /** @param {unknown} thrown */
  fault: (thrown) => tell('done', JSON.stringify(/** @type {Fault} */ ({ fault: pack(thrown) }))),
};

/** Tell the driver that this page is there, by a question whose answer never comes. */
export function holdLine() {
  const line = new AbortController();
  void fetch(new URL('alive', BASE), { signal: line.signal }).catch(() => {});
  return line;
}
