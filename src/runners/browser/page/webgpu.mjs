/** The execution provider `webgpu`. */

import { Skip } from '../../javascript/common/faults.mjs';

/** @import { InferenceSession } from 'onnxruntime-web' */
/** @import { Ort } from './web_host.mjs' */

// How the adapter is chosen, and what the provider itself takes.
const ADAPTER_OPTIONS = ['powerPreference', 'forceFallbackAdapter'];
const SESSION_OPTIONS = [
  'preferredLayout',
  'validationMode',
  'forceCpuNodeNames',
  'storageBufferCacheMode',
  'uniformBufferCacheMode',
  'queryResolveBufferCacheMode',
  'defaultBufferCacheMode',
];

/** @type {object | null} */
let used = null;

/**
 * Choose the adapter. Raises Skip when there is none, or one in software that was not asked for.
 * @param {Ort} ort
 * @param {Record<string, string>} [given]
 */
export async function useAdapter(ort, given = {}) {
  const forceFallbackAdapter = given.forceFallbackAdapter === '1';
  const powerPreference = /** @type {GPUPowerPreference | undefined} */ (given.powerPreference);
  const adapter = await navigator.gpu?.requestAdapter({ forceFallbackAdapter, powerPreference });
  if (!adapter) throw new Skip('this Chromium has no WebGPU adapter');
  if (adapter.info.isFallbackAdapter && !forceFallbackAdapter) {
    const { description, architecture } = adapter.info;
    throw new Skip(`this Chromium has WebGPU in software only: ${description || architecture}`);
  }
  ort.env.webgpu.adapter = adapter;
  const { vendor, architecture, device, description } = adapter.info;
  used = { vendor, architecture, device, description };
}

/** Return what the record says of the adapter; nothing where none is used. */
export function adapterFacts() {
  return used ? { webgpu_adapter: used } : {};
}

/**
 * Return the provider in the package's words, the options of it that were set, and which were not.
 * @param {Record<string, string>} given
 */
export function webgpuOptions(given) {
  const entries = Object.entries(given);
  const known = [...ADAPTER_OPTIONS, ...SESSION_OPTIONS];
  const told = Object.fromEntries(entries.filter(([key]) => known.includes(key)));
  const providerNotSet = entries
    .filter(([key]) => !known.includes(key))
    .map(([key]) => `provider_options.${key}`);
  const own = Object.fromEntries(entries.filter(([key]) => SESSION_OPTIONS.includes(key)));
  const executionProvider = /** @type {InferenceSession.ExecutionProviderConfig} */ ({
    name: 'webgpu',
    ...own,
  });
  return { executionProvider, providerTold: told, providerNotSet };
}
