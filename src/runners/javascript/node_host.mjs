/** onnxruntime-node: where sessions come from and results go in Node.js. */

import { existsSync, readFileSync, readdirSync, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, dirname, join } from 'node:path';

import { Fault, refusalOf, wordsOf } from './faults.mjs';
import { ROLE } from './plan.mjs';
import { Result } from './result.mjs';
import { TINY_MODEL, nanoseconds, providerOptions, sessionOptions } from './session.mjs';
import { Turns } from './turns.mjs';

/** @import { Plan } from './plan.mjs' */
/** @import { Entry, Host, Opened } from './types.mjs' */

// Of <dlfcn.h>: it stays although Node closes it.
const RTLD_NODELETE = 0x1000;

/**
 * Load a shared library of ONNX Runtime before the package's own.
 *
 * The binding asks for it by its soname, which then is there already. Node takes it for an add-on
 * and refuses it as such; what counts is that it is mapped.
 * @param {string} file
 */
export function preload(file) {
  try {
    process.dlopen({ exports: {} }, file, constants.dlopen.RTLD_NOW | RTLD_NODELETE);
  } catch (thrown) {
    const isMapped = () => readFileSync('/proc/self/maps', 'utf8').includes(realpathSync(file));
    if (!existsSync(file) || !isMapped()) throw new Fault('missing-dependency', wordsOf(thrown));
  }
}

const origin = Number(process.hrtime.bigint()) - performance.now() * 1e6;

/** @implements {Host} */
export class NodeHost extends Result {
  #ort;
  // As fine as the kernel's clock: the least that performance.now() tells apart.
  resolutionNs = 1;

  /**
   * @param {Plan} plan
   * @param {typeof import('onnxruntime-node')} ort
   */
  constructor(plan, ort) {
    super(plan);
    this.#ort = ort;
    this.TensorClass = ort.Tensor;
  }

  /**
   * Load the package, and ONNX Runtime's environment, which comes with a first session.
   * @param {Plan} plan
   */
  static async make(plan) {
    const { default: ort } = await import('onnxruntime-node');
    // Newer versions of Node.js have it, and the binding takes one for empty; without it the
    // package gives float16 as its bits.
    Reflect.deleteProperty(globalThis, 'Float16Array');
    ort.env.logLevel = 'error';
    const session = await ort.InferenceSession.create(TINY_MODEL, { logSeverityLevel: 3 });
    await session.release();
    return new NodeHost(plan, ort);
  }

  turns() {
    return Turns.join();
  }

  /** `performance.now()` begins anew in each thread, hrtime makes garbage. */
  sharedNs() {
    return origin + performance.now() * 1e6;
  }

  /**
   * @param {Entry} file
   * @param {boolean} profiled
   * @returns {Promise<Opened>}
   */
  async open({ text: model }, profiled) {
    const { options, notSet } = sessionOptions(this.plan, profiled);
    const name = this.plan.text(ROLE.provider) ?? 'cpu';
    const { values, notSet: more } = providerOptions(
      this.plan,
      name === 'cuda' ? ['device_id'] : [],
    );
    const onDevice = { name, deviceId: Number(values.device_id) };
    options.executionProviders = ['device_id' in values ? onDevice : name];
    if (profiled) options.profileFilePrefix = this.plan.text(ROLE.profile);
    let session;
    const begin = performance.now();
    try {
      session = await this.#ort.InferenceSession.create(model, options);
    } catch (thrown) {
      const words = wordsOf(thrown);
      // The C interface says so when a provider's library cannot be loaded; nothing falls back.
      const missing = /execution provider|provider.*librar|librar.*provider/i;
      if (name !== 'cpu' && missing.test(words)) throw new Fault('skipped', words);
      throw refusalOf(model, thrown);
    }
    const sessionNs = nanoseconds(performance.now() - begin);
    const facts = {
      runtime_version: this.#ort.env.versions.node ?? '',
      provider_used: name,
      options_not_set: [...notSet, ...more],
      // Outputs are copied into JavaScript's memory inside of run; with a device the inputs too.
      run_includes: name === 'cpu' ? ['copy'] : ['bind', 'copy'],
    };
    return { session, sessionNs, facts };
  }

  /**
   * End a profile; return its file, whose name the binding does not tell: the last one.
   * @param {() => void} end
   */
  profileFile(end) {
    end();
    const prefix = this.plan.text(ROLE.profile) ?? '';
    const begin = `${basename(prefix)}_`;
    const names = readdirSync(dirname(prefix)).filter(
      (name) => name.startsWith(begin) && name.endsWith('.json'),
    );
    return join(dirname(prefix), names.sort()[names.length - 1]);
  }

  facts() {
    return {
      language_version: `Node.js ${process.version}`,
      clock_resolution_ns: this.resolutionNs,
      garbage_collection: globalThis.gc ? 'on, after a collection before the measurement' : 'on',
    };
  }
}
