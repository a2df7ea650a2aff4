/** Sessions of onnxruntime-node, by the options of the runner contract. */

import { refusalOf, Skip, wordsOf } from './common/faults.mjs';
import { cpuNotSet, sessionOptions } from './common/options.mjs';
import { TINY_MODEL } from './common/tiny_model.mjs';

/** @import { Facts, Opened, Options } from './common/types.mjs' */

/** @typedef {typeof import('onnxruntime-node')} Ort */

// Read from its sources, and seen in ONNX Runtime's own log: everything reaches it.
const reachesAll = () => true;

/**
 * Make ONNX Runtime's environment, which the package does with the first session.
 * @param {Ort} ort
 */
export async function makeEnvironment(ort) {
  // Newer versions of Node.js have it, and the binding takes one for empty; without it the package
  // gives float16 as its bits.
  Reflect.deleteProperty(globalThis, 'Float16Array');
  ort.env.logLevel = 'error';
  const session = await ort.InferenceSession.create(TINY_MODEL, { logSeverityLevel: 3 });
  await session.release();
}

/**
 * @param {Ort} ort
 * @param {string} model
 * @param {string} provider
 * @param {Options} given
 * @param {string | null} profile the prefix of the profile's file
 * @returns {Promise<Opened>}
 */
export async function openSession(ort, model, provider, given, profile) {
  const { options, told, notSet } = sessionOptions(given, reachesAll, profile !== null);
  const { executionProvider, providerTold, providerNotSet } = providerOf(
    provider,
    given.provider_options,
  );
  options.executionProviders = [executionProvider];
  if (given.provider_options && provider !== 'cpu') told.provider_options = providerTold;
  if (profile !== null)
    Object.assign(options, { enableProfiling: true, profileFilePrefix: profile });
  const begin = performance.now();
  const session = await create(ort, model, provider, options);
  const sessionNs = Math.round((performance.now() - begin) * 1e6);
  /** @type {Facts} */
  const facts = {
    runtime_version: ort.env.versions.node ?? '',
    provider_used: provider,
    session_options: told,
    options_not_set: [...notSet, ...providerNotSet],
    // The outputs are copied into JavaScript's memory inside of run; with a device the inputs too.
    run_includes: provider === 'cpu' ? ['copy'] : ['bind', 'copy'],
  };
  const endProfile = () => session.endProfiling();
  return {
    session,
    sessionNs,
    facts,
    bindsInRun: provider !== 'cpu',
    TensorClass: ort.Tensor,
    endProfile,
  };
}

/**
 * @param {Ort} ort
 * @param {string} model
 * @param {string} provider
 * @param {import('onnxruntime-node').InferenceSession.SessionOptions} options
 */
async function create(ort, model, provider, options) {
  try {
    return await ort.InferenceSession.create(model, options);
  } catch (thrown) {
    // The C interface says so when a provider's library cannot be loaded; nothing falls back.
    const missing = /execution provider|provider.*librar|librar.*provider/i;
    if (provider !== 'cpu' && missing.test(wordsOf(thrown))) throw new Skip(wordsOf(thrown));
    throw refusalOf(model, thrown);
  }
}

/**
 * Return the provider in the binding's words, the options of it that were set, and which were not.
 * @param {string} provider
 * @param {Record<string, string>} given
 */
function providerOf(provider, given = {}) {
  if (provider === 'cpu') {
    return { executionProvider: provider, providerTold: {}, providerNotSet: cpuNotSet(given) };
  }
  const reaches = (/** @type {string} */ key) => provider === 'cuda' && key === 'device_id';
  const entries = Object.entries(given);
  const told = Object.fromEntries(entries.filter(([key]) => reaches(key)));
  const notSet = entries.filter(([key]) => !reaches(key)).map(([key]) => `provider_options.${key}`);
  const executionProvider =
    told.device_id === undefined ? provider : { name: provider, deviceId: Number(told.device_id) };
  return { executionProvider, providerTold: told, providerNotSet: notSet };
}
