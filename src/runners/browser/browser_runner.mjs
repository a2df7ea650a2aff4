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
/** @import { Runner, Save, Write } from '../javascript/driver/program.mjs' */
/** @import { ReadTraining } from '../javascript/driver/training.mjs' */
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

  /**
   * @param {ReadTraining} read
   * @param {Save} save
   */
  async train({ training, files }, save) {
    if (this.#given.provider !== 'cpu') {
      throw new BadInput(
        `--provider ${this.#given.provider}: onnxruntime-web with WebGPU has no kernel for float64, ` +
          `which hyper-parameters are: expected cpu`,
      );
    }
    const { data, order, state, seed, ...rest } = training;
    const header = { entries: files.entries, batch: null };
    const { graphs } = files;
    const job = {
      ...this.#job('train', graphs.step, header),
      train: { ...rest, seed: String(seed), graphs },
    };
    const given = { ...graphs, state: files.state, order: this.#given.train?.order ?? '' };
    const { record, diverged } = await this.#hand(
      job,
      [...inputFiles(header), ...Object.entries(given)],
      () => {},
      save,
    );
    return { record: /** @type {any} */ (record), diverged: diverged ?? null };
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
    // A step holds no weights.
    const externals = mode === 'train' ? [] : externalFiles(model);
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
  #run(job, header, write) {
    // The page would find the same faults, but later than a bad file should be told of.
    readTensors(header.entries);
    const folder = dirname(job.model);
    /** @type {[string, string][]} */
    const externals = job.externals.map((name, index) => [`external-${index}`, join(folder, name)]);
    const files = [['model', job.model], ...inputFiles(header), ...externals];
    return this.#hand(job, /** @type {[string, string][]} */ (files), write, () => {});
  }

  /**
   * @param {Job} job
   * @param {[string, string][]} files path by name
   * @param {Write} write
   * @param {Save} save
   */
  async #hand(job, files, write, save) {
    const chromium = await this.#open();
    const noted = { first_result_ns: 0, peak_memory_bytes: 0 };
    const done = this.#exchange.run({
      job,
      files: new Map(files),
      first: () => (noted.first_result_ns = Number(process.hrtime.bigint())),
      outputs: write,
      measured: () => (noted.peak_memory_bytes = chromium.peakMemory()),
      save: (file) => save([file]),
    });
    const { record, profile, diverged } = await Promise.race([
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
    return { record: { ...record, ...facts }, profile, diverged };
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
 * Return the paths of the inputs by the name that the page asks for.
 * @param {Header} header
 * @returns {[string, string][]}
 */
function inputFiles({ entries }) {
  return entries.map(({ path }, index) => [`input-${index}`, path]);
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
