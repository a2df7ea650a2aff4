/** Session options of the runner contract, in ONNX Runtime's words for JavaScript. */

/** @import { InferenceSession } from 'onnxruntime-common' */
/** @import { Options } from './types.mjs' */

const WORDS = {
  intra_op_num_threads: 'intraOpNumThreads',
  inter_op_num_threads: 'interOpNumThreads',
  execution_mode: 'executionMode',
  graph_optimization_level: 'graphOptimizationLevel',
  enable_cpu_mem_arena: 'enableCpuMemArena',
  enable_mem_pattern: 'enableMemPattern',
};

const SEVERITY = { error: 3, info: 1 };

/**
 * Return ONNX Runtime's options, what was set, and what could not be.
 *
 * Provider options are the caller's: each provider has words of its own.
 * @param {Options} given
 * @param {(key: string) => boolean} reaches tells whether the binding hands an option on
 * @param {boolean} profile
 */
export function sessionOptions(given, reaches, profile) {
  /** @type {Record<string, unknown>} */
  const told = {};
  /** @type {Record<string, string>} */
  const extra = {};
  /** @type {Record<string, unknown>} */
  const options = { logSeverityLevel: profile ? SEVERITY.info : SEVERITY.error };
  const notSet = [];
  for (const [key, value] of Object.entries(given)) {
    if (key === 'provider_options') continue;
    if (!reaches(key)) {
      notSet.push(key);
      continue;
    }
    if (key.includes('.')) extra[key] = String(value);
    else options[WORDS[/** @type {keyof typeof WORDS} */ (key)]] = value;
    told[key] = value;
  }
  options.extra = extra;
  return { options: /** @type {InferenceSession.SessionOptions} */ (options), told, notSet };
}

/**
 * Return what of the provider's options is not set on the CPU, which takes none in any language.
 * @param {Record<string, string>} given
 */
export function cpuNotSet(given) {
  return Object.keys(given).length ? ['provider_options'] : [];
}
