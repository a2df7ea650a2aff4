/** Sessions of onnxruntime-web, by the options of the runner contract. */

import { Crash, refusalOf } from '../../javascript/common/faults.mjs';
import { cpuNotSet, sessionOptions } from '../../javascript/common/options.mjs';
import { TINY_MODEL } from '../../javascript/common/tiny_model.mjs';
import { ORT, address, bytesOf } from './driver.mjs';
import { printedBy } from './console.mjs';
import { adapterFacts, useAdapter, webgpuOptions } from './webgpu.mjs';

/** @import { InferenceSession } from 'onnxruntime-web' */
/** @import { Facts, Host, Opened } from '../../javascript/common/types.mjs' */
/** @import { Job } from '../wire.mjs' */

/** @typedef {typeof import('onnxruntime-web')} Ort */

// Nothing is per session: the one pool of WebAssembly has the threads of `env.wasm.numThreads`, one
// between nodes, and its own way to wait.
const PER_PROCESS = [
  'inter_op_num_threads',
  'session.intra_op.allow_spinning',
  'session.inter_op.allow_spinning',
];

/** @type {Promise<Ort> | null} */
let loaded = null;

/** @implements {Host} */
export class WebHost {
  #ort;
  #job;
  /** The text of the profile, when there was one. @type {string | undefined} */
  profile;

  /**
   * @param {Ort} ort
   * @param {Job} job
   */
  constructor(ort, job) {
    this.#ort = ort;
    this.#job = job;
    this.resolutionNs = clockStep();
  }

  /**
   * Load ONNX Runtime, once in a worker. Raises Skip when the provider is not there.
   * @param {Job} job
   */
  static async make(job) {
    loaded ??= load(job);
    return new WebHost(await loaded, job);
  }

  /** @param {boolean} profile */
  open(profile) {
    return this.openFile('model', this.#job.model, profile);
  }

  /**
   * @param {string} file the name under which the driver gives it
   * @param {string} path for messages
   * @param {boolean} profile
   * @returns {Promise<Opened>}
   */
  async openFile(file, path, profile) {
    const { provider, options: given } = this.#job;
    const { options, told, notSet } = sessionOptions(
      given,
      (key) => reaches(key, provider),
      profile,
    );
    const { executionProvider, providerTold, providerNotSet } = providerOf(
      provider,
      given.provider_options,
    );
    options.executionProviders = [executionProvider];
    // One of the process, which `load` has set.
    delete options.intraOpNumThreads;
    if (given.provider_options && provider !== 'cpu') told.provider_options = providerTold;
    options.enableProfiling = profile;
    const begin = performance.now();
    const session = await this.#create(file, path, options);
    const sessionNs = Math.round((performance.now() - begin) * 1e6);
    /** @type {Facts} */
    const facts = {
      runtime_version: this.#ort.env.versions.web ?? '',
      provider_used: provider,
      session_options: told,
      options_not_set: [...notSet, ...providerNotSet],
      // Both are copied between JavaScript's memory and WebAssembly's.
      run_includes: ['bind', 'copy'],
    };
    const endProfile = () => {
      this.profile = printedBy(() => session.endProfiling());
    };
    const TensorClass = /** @type {any} */ (this.#ort.Tensor);
    return { session, sessionNs, facts, bindsInRun: true, TensorClass, endProfile };
  }

  /**
   * @param {string} file
   * @param {string} path
   * @param {InferenceSession.SessionOptions} options
   */
  async #create(file, path, options) {
    const externalData = this.#job.externals.map((path, index) => ({
      path,
      data: address(`external-${index}`),
    }));
    const bytes = await bytesOf(file);
    try {
      return await this.#ort.InferenceSession.create(bytes, { ...options, externalData });
    } catch (thrown) {
      throw refusalOf(path, thrown);
    }
  }

  /** Return what the record says of the browser. */
  async facts() {
    const { env } = this.#ort;
    const brands = await navigator.userAgentData?.getHighEntropyValues(['fullVersionList']);
    const chromium = brands?.fullVersionList.find(({ brand }) => brand === 'Chromium');
    return {
      language_version: chromium ? `Chromium ${chromium.version}` : navigator.userAgent,
      clock_resolution_ns: this.resolutionNs,
      garbage_collection: globalThis.gc ? 'on, after a collection before the measurement' : 'on',
      wasm_threads: env.wasm.numThreads,
      ...adapterFacts(),
    };
  }
}

/**
 * @param {string} key
 * @param {string} provider
 */
function reaches(key, provider) {
  if (PER_PROCESS.includes(key)) return false;
  // The package turns memory patterns off with WebGPU, whatever is asked.
  return !(key === 'enable_mem_pattern' && provider === 'webgpu');
}

/**
 * @param {string} provider
 * @param {Record<string, string>} [given]
 */
function providerOf(provider, given = {}) {
  if (provider === 'webgpu') return webgpuOptions(given);
  return { executionProvider: 'wasm', providerTold: {}, providerNotSet: cpuNotSet(given) };
}

/**
 * Load the package, WebAssembly and ONNX Runtime's environment, which comes with a first session.
 * @param {Job} job
 * @returns {Promise<Ort>}
 */
async function load({ provider, options }) {
  const file = provider === 'webgpu' ? 'ort.webgpu.min.mjs' : 'ort.wasm.min.mjs';
  /** @type {Ort} */
  const ort = await import(ORT + file);
  ort.env.logLevel = 'error';
  ort.env.wasm.wasmPaths = ORT;
  const threads = options.intra_op_num_threads;
  if (threads) ort.env.wasm.numThreads = threads;
  if (provider === 'webgpu') await useAdapter(ort, options.provider_options);
  const executionProviders = [provider === 'webgpu' ? 'webgpu' : 'wasm'];
  const session = await ort.InferenceSession.create(TINY_MODEL, {
    executionProviders,
    logSeverityLevel: 3,
  });
  await session.release();
  if (threads && ort.env.wasm.numThreads !== threads) {
    throw new Crash(
      `onnxruntime-web took ${ort.env.wasm.numThreads} threads, asked for ${threads}`,
    );
  }
  return ort;
}

/** Return the step of `performance.now()` as it is seen, in nanoseconds. */
function clockStep() {
  let least = Infinity;
  for (let seen = 0, last = performance.now(); seen < 20;) {
    const now = performance.now();
    if (now === last) continue;
    least = Math.min(least, now - last);
    last = now;
    seen++;
  }
  return Math.round(least * 1e6);
}
