/** onnxruntime-web: where sessions come from in a page. */

import { Fault, refusalOf } from '../../javascript/faults.mjs';
import { LEVEL, ROLE } from '../../javascript/plan.mjs';
import {
  TINY_MODEL,
  nanoseconds,
  providerOptions,
  sessionOptions,
} from '../../javascript/session.mjs';
import { printedBy } from './console.mjs';
import { Driver, ORT, address, bytesAt, fetched, tell } from './driver.mjs';
import { SESSION_OPTIONS, WEBGPU_OPTIONS, useAdapter } from './webgpu.mjs';

/** @import { InferenceSession } from 'onnxruntime-web' */
/** @import { Plan } from '../../javascript/plan.mjs' */
/** @import { Entry, Host, Opened } from '../../javascript/types.mjs' */

/** @typedef {typeof import('onnxruntime-web')} Ort */

// Nothing is per session: the one pool of WebAssembly has the threads of `env.wasm.numThreads`, one
// between nodes, and its own way to wait.
const PER_PROCESS = [
  'inter_op_num_threads',
  'session.intra_op.allow_spinning',
  'session.inter_op.allow_spinning',
];

/** @implements {Host} */
export class WebHost extends Driver {
  #ort;
  #isGpu;
  #adapter;
  resolutionNs = clockStep();

  /**
   * @param {Plan} plan
   * @param {number} epoch
   * @param {Ort} ort
   * @param {object} adapter what the last line says of it
   */
  constructor(plan, epoch, ort, adapter) {
    super(plan, epoch);
    this.#ort = ort;
    this.TensorClass = /** @type {any} */ (ort.Tensor);
    this.#isGpu = plan.text(ROLE.provider) === 'webgpu';
    this.#adapter = adapter;
  }

  /**
   * Load the package, WebAssembly and ONNX Runtime's environment, which comes with a first session.
   * Raises Fault when the provider is not there.
   * @param {Plan} plan
   * @param {number} epoch
   */
  static async make(plan, epoch) {
    const isGpu = plan.text(ROLE.provider) === 'webgpu';
    if (isGpu && plan.level === LEVEL.train) {
      const words = 'has no kernel for float64, which hyper-parameters are';
      throw new Fault('skipped', `onnxruntime-web with WebGPU ${words}`);
    }
    /** @type {Ort} */
    const ort = await import(ORT + (isGpu ? 'ort.webgpu.min.mjs' : 'ort.wasm.min.mjs'));
    ort.env.logLevel = 'error';
    ort.env.wasm.wasmPaths = ORT;
    const asked = plan.all(ROLE.option).find(({ name }) => name === 'intra_op_num_threads');
    const threads = Number(asked?.text ?? 0);
    if (threads) ort.env.wasm.numThreads = threads;
    const { values } = providerOptions(plan, WEBGPU_OPTIONS);
    const adapter = isGpu ? { webgpu_adapter: await useAdapter(ort, values) } : {};
    const executionProviders = [isGpu ? 'webgpu' : 'wasm'];
    const options = { executionProviders, logSeverityLevel: /** @type {const} */ (3) };
    const session = await ort.InferenceSession.create(TINY_MODEL, options);
    await session.release();
    if (threads && ort.env.wasm.numThreads !== threads) {
      const words = `onnxruntime-web took ${ort.env.wasm.numThreads} threads, asked for ${threads}`;
      throw new Fault('crash', words);
    }
    return new WebHost(plan, epoch, ort, adapter);
  }

  /**
   * @param {Entry} file
   * @param {boolean} profiled
   * @returns {Promise<Opened>}
   */
  async open(file, profiled) {
    const isGpu = this.#isGpu;
    // The package turns memory patterns off with WebGPU, whatever is asked.
    const lost = [...PER_PROCESS, ...(isGpu ? ['enable_mem_pattern'] : [])];
    const reaches = (/** @type {string} */ key) => !lost.includes(key);
    const { options, notSet } = sessionOptions(this.plan, profiled, reaches);
    const known = providerOptions(this.plan, isGpu ? WEBGPU_OPTIONS : []);
    const own = providerOptions(this.plan, SESSION_OPTIONS).values;
    const provider = isGpu ? { name: 'webgpu', ...own } : 'wasm';
    options.executionProviders = [
      /** @type {InferenceSession.ExecutionProviderConfig} */ (provider),
    ];
    // One of the process, which `make` has set.
    delete options.intraOpNumThreads;
    // A step holds no weights.
    const isModel = file.role === ROLE.model;
    const names = isModel ? await (await fetched(`names/${file.index}`)).json() : [];
    const begin = performance.now();
    const session = await this.#create(file, options, names);
    const sessionNs = nanoseconds(performance.now() - begin);
    const facts = {
      runtime_version: this.#ort.env.versions.web ?? '',
      provider_used: isGpu ? 'webgpu' : 'cpu',
      options_not_set: [...notSet, ...known.notSet],
      // Both are copied between JavaScript's memory and WebAssembly's.
      run_includes: ['bind', 'copy'],
    };
    return { session, sessionNs, facts };
  }

  /**
   * @param {Entry} file
   * @param {InferenceSession.SessionOptions} options
   * @param {string[]} names of files beside it that hold weights
   */
  async #create({ index, text }, options, names) {
    const externalData = names.map((path) => ({
      path,
      data: address(`beside/${index}/${path.split('/').map(encodeURIComponent).join('/')}`),
    }));
    const bytes = await bytesAt(`file/${index}`);
    try {
      return await this.#ort.InferenceSession.create(bytes, { ...options, externalData });
    } catch (thrown) {
      throw refusalOf(text, thrown);
    }
  }

  /**
   * End a profile; return the file that the driver makes of what is printed then.
   * @param {() => void} end
   */
  profileFile(end) {
    return tell('profile', printedBy(end));
  }

  /** Return what the last line says of the browser. */
  async facts() {
    const brands = await navigator.userAgentData?.getHighEntropyValues(['fullVersionList']);
    const chromium = brands?.fullVersionList.find(({ brand }) => brand === 'Chromium');
    return {
      language_version: chromium ? `Chromium ${chromium.version}` : navigator.userAgent,
      clock_resolution_ns: this.resolutionNs,
      garbage_collection: globalThis.gc ? 'on, after a collection before the measurement' : 'on',
      wasm_threads: this.#ort.env.wasm.numThreads,
      ...this.#adapter,
    };
  }
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
  return nanoseconds(least);
}
