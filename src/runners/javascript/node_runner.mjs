/** What onnxruntime-node does for each mode of the runner contract. */

import { Engine } from './common/engine.mjs';
import { BadInput, Skip, Unsupported } from './common/faults.mjs';
import { runLatency } from './common/latency.mjs';
import { runTraining } from './common/train/loop.mjs';
import { cudaDevices } from './cuda.mjs';
import { readTensors } from './driver/inputs.mjs';
import { statusLine } from './driver/process_facts.mjs';
import { loadBinding, preload } from './library.mjs';
import { runLoad } from './load.mjs';
import { profileFiles } from './profile.mjs';
import { makeEnvironment, openSession } from './session.mjs';

/** @import { Options } from './common/types.mjs' */
/** @import { Given } from './driver/arguments.mjs' */
/** @import { Header } from './driver/inputs.mjs' */
/** @import { Runner, Save, Write } from './driver/program.mjs' */
/** @import { ReadTraining } from './driver/training.mjs' */
/** @import { Ort } from './session.mjs' */

const PROVIDERS = ['cpu', 'cuda'];
// As fine as the kernel's clock: the least that performance.now() tells apart.
const RESOLUTION_NS = 1;

/** @implements {Runner} */
export class NodeRunner {
  /** @type {Given} */
  #given = /** @type {any} */ (null);
  /** @type {Options} */
  #options = {};
  /** @type {Ort} */
  #ort = /** @type {any} */ (null);
  #libraryFile = '';

  /**
   * @param {Given} given
   * @param {Options} options
   */
  async start(given, options) {
    if (!PROVIDERS.includes(given.provider)) {
      throw new BadInput(`--provider ${given.provider}: expected one of ${PROVIDERS.join(', ')}`);
    }
    if (given.provider === 'cuda' && cudaDevices() === 0) throw new Skip('no CUDA device');
    // The binding cannot set this provider option; the libraries below it read a variable.
    if (options.provider_options?.use_tf32 === '0') process.env.NVIDIA_TF32_OVERRIDE = '0';
    this.#given = given;
    this.#options = options;
    if (given.library !== undefined) preload(given.library);
    const { ort, libraryFile } = await loadBinding();
    this.#ort = ort;
    this.#libraryFile = libraryFile;
    await makeEnvironment(ort);
  }

  /**
   * @param {string} model
   * @param {string | null} profile
   */
  #open(model, profile) {
    return openSession(this.#ort, model, this.#given.provider, this.#options, profile);
  }

  /**
   * @param {Header} header
   * @param {Write} write
   */
  async latency({ entries, batch }, write) {
    const { model, limits } = this.#given;
    const prefix = this.#given.profile;
    const before = prefix === undefined ? [] : profileFiles(prefix);
    const open = (/** @type {boolean} */ profiled) =>
      this.#open(model, profiled ? (prefix ?? '') : null);
    const job = { feed: readTensors(entries), batch, limits, profile: prefix !== undefined };
    const noted = { first_result_ns: 0, peak_memory_bytes: 0 };
    const told = {
      firstResult: () => (noted.first_result_ns = Number(process.hrtime.bigint())),
      outputs: write,
      measured: () => (noted.peak_memory_bytes = peakMemory()),
    };
    const record = await runLatency({ open, resolutionNs: RESOLUTION_NS }, job, told);
    const profile =
      prefix === undefined
        ? {}
        : { profile_file: profileFiles(prefix).find((file) => !before.includes(file)) };
    return { ...record, ...noted, ...profile, ...this.#process() };
  }

  /**
   * @param {Header} header
   * @param {Float64Array} arrivals
   * @param {Write} write
   */
  async load({ entries, batch }, arrivals, write) {
    const feed = readTensors(entries);
    const record = await runLoad(this.#given, this.#options, feed, batch, arrivals, write);
    return { ...record, peak_memory_bytes: peakMemory(), ...this.#process() };
  }

  /**
   * @param {string} model
   * @param {Header} header
   * @param {Write} write
   */
  async runCase(model, { entries, batch }, write) {
    const feed = readTensors(entries);
    const engine = new Engine(await this.#open(model, null));
    try {
      if (engine.notTensors.length) {
        throw new Unsupported(
          `outputs [${engine.notTensors}] are no tensors, and onnxruntime-node gives no other values`,
        );
      }
      engine.check(feed, batch);
      await engine.allRows(feed, batch, write);
    } finally {
      await engine.close();
    }
  }

  /**
   * @param {ReadTraining} read
   * @param {Save} save
   */
  async train({ training, files }, save) {
    const { record, diverged } = await runTraining(training, {
      open: (graph) => this.#open(files.graphs[graph], null),
      // Outputs are copied into JavaScript's memory inside of run; with a device the inputs too.
      runIncludes: this.#given.provider === 'cpu' ? ['read'] : ['bind', 'read'],
      save,
    });
    const facts = { peak_memory_bytes: peakMemory(), ...this.#process() };
    return { record: { ...record, ...facts }, diverged };
  }

  #process() {
    return {
      language_version: `Node.js ${process.version}`,
      library_file: this.#libraryFile,
      clock_resolution_ns: RESOLUTION_NS,
      garbage_collection: globalThis.gc ? 'on, after a collection before the measurement' : 'on',
    };
  }
}

/** In bytes. Not by getrusage, where the peak of what started this program counts too. */
function peakMemory() {
  return 1024 * parseInt(statusLine('VmHWM') ?? '', 10);
}
