/** What onnxruntime-web does for each mode of the runner contract: driven here, done in a page. */

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { BadInput, Crash } from '../javascript/common/faults.mjs';
import { readTensors } from '../javascript/driver/inputs.mjs';
import { Chromium, findChromium } from './chromium.mjs';
import { Exchange } from './exchange.mjs';
import { externalFiles } from './external_data.mjs';
import { PageServer } from './server.mjs';

/** @import { Options } from '../javascript/common/types.mjs' */
/** @import { Given } from '../javascript/driver/arguments.mjs' */
/** @import { Header } from '../javascript/driver/inputs.mjs' */
/** @import { Runner, Write } from '../javascript/driver/program.mjs' */
/** @import { Job } from './wire.mjs' */

const PROVIDERS = ['cpu', 'webgpu'];
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PAGE = 'browser/page/index.html';
// A page that has not asked for its work by then never will.
const OPENING_MS = 120_000;

/** @implements {Runner} */
export class BrowserRunner {
  /** @type {Given} */
  #given = /** @type {any} */ (null);
  /** @type {Options} */
  #options = {};
  /** @type {Chromium | null} */
  #chromium = null;
  /** Raises Crash when the page does not open. @type {Promise<never>} */
  #late = new Promise(() => {});
  #exchange = new Exchange();
  #server = new PageServer(ROOT, this.#exchange);

  /**
   * Find Chromium; it is started with the first job.
   * @param {Given} given
   * @param {Options} options
   */
  start(given, options) {
    if (!PROVIDERS.includes(given.provider)) {
      throw new BadInput(`--provider ${given.provider}: expected one of ${PROVIDERS.join(', ')}`);
    }
    findChromium();
    this.#given = given;
    this.#options = options;
  }

  /**
   * @param {Header} header
   * @param {Write} write
   */
  async latency(header, write) {
    const prefix = this.#given.profile;
    const job = {
      ...this.#job('latency', this.#given.model, header),
      profile: prefix !== undefined,
    };
    const { record, profile } = await this.#run(job, header, write);
    if (prefix === undefined) return record;
    return { ...record, profile_file: writeProfile(prefix, profile ?? '') };
  }

  /**
   * @param {Header} header
   * @param {Float64Array} arrivals
   * @param {Write} write
   */
  async load(header, arrivals, write) {
    const { model, limits, sessions } = this.#given;
    const limitNs = 2 * arrivals[arrivals.length - 1] + limits.maxSeconds * 1e9;
    const job = { ...this.#job('load', model, header), sessions, arrivals: [...arrivals], limitNs };
    return (await this.#run(job, header, write)).record;
  }

  /**
   * @param {string} model
   * @param {Header} header
   * @param {Write} write
   */
  async runCase(model, header, write) {
    await this.#run(this.#job('case', model, header), header, write);
  }

  /** End the browser, if it was started. */
  async close() {
    await this.#chromium?.close();
    this.#server.close();
  }

  /**
   * @param {Job['mode']} mode
   * @param {string} model
   * @param {Header} header
   * @returns {Job}
   */
  #job(mode, model, { entries, batch }) {
    const { provider, limits } = this.#given;
    const inputs = entries.map(({ name, dtype, shape }) => ({ name, dtype, shape }));
    const externals = externalFiles(model);
    const options = this.#options;
    const load = { sessions: 1, arrivals: [], limitNs: 0 };
    return {
      mode,
      model,
      provider,
      options,
      inputs,
      batch,
      limits,
      profile: false,
      externals,
      ...load,
    };
  }

  /**
   * Have the page do it; return its record, and the profile's text.
   * @param {Job} job
   * @param {Header} header
   * @param {Write} write
   */
  async #run(job, { entries }, write) {
    // The page would find the same faults, but later than a bad file should be told of.
    readTensors(entries);
    const chromium = await this.#open();
    const folder = dirname(job.model);
    const files = new Map([
      ['model', job.model],
      ...entries.map(({ path }, index) => /** @type {const} */ ([`input-${index}`, path])),
      ...job.externals.map(
        (name, index) => /** @type {const} */ ([`external-${index}`, join(folder, name)]),
      ),
    ]);
    const noted = { first_result_ns: 0, peak_memory_bytes: 0 };
    const done = this.#exchange.run({
      job,
      files,
      first: () => (noted.first_result_ns = Number(process.hrtime.bigint())),
      outputs: write,
      measured: () => (noted.peak_memory_bytes = chromium.peakMemory()),
    });
    const { record, profile } = await Promise.race([
      done,
      this.#server.gone,
      chromium.ended,
      this.#late,
    ]);
    const facts = {
      ...noted,
      peak_memory_of:
        "the sum of VmHWM over Chromium's processes: pages that they share count in each",
      library_file: [...this.#server.wasm].join(', '),
    };
    return { record: { ...record, ...facts }, profile };
  }

  async #open() {
    if (this.#chromium) return this.#chromium;
    const url = await this.#server.listen();
    const software = this.#options.provider_options?.forceFallbackAdapter === '1';
    const gpu = this.#given.provider === 'cpu' ? 'none' : software ? 'software' : 'any';
    this.#chromium = new Chromium(findChromium(), url + PAGE, gpu);
    this.#late = this.#opening();
    return this.#chromium;
  }

  /** Raise Crash when the page does not ask for work in time. @returns {Promise<never>} */
  #opening() {
    const late = new Crash(`Chromium did not open the page within ${OPENING_MS / 1000} s`);
    return new Promise((_, reject) => {
      setTimeout(() => this.#exchange.isOpen || reject(late), OPENING_MS).unref();
    });
  }
}

/**
 * Write what ONNX Runtime printed as its profile; return the file.
 * @param {string} prefix
 * @param {string} text
 */
function writeProfile(prefix, text) {
  const time = new Date().toISOString().replace('T', '_').replace(/[:.]/g, '-').replace('Z', '');
  const file = `${prefix}_${time}.json`;
  writeFileSync(file, text);
  return file;
}
