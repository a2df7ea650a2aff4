/** The execution provider `webgpu`. */

import { Fault } from '../../javascript/faults.mjs';

/** @import { Ort } from './web_host.mjs' */

/** What the provider itself takes. */
export const SESSION_OPTIONS = [
  'preferredLayout',
  'validationMode',
  'forceCpuNodeNames',
  'storageBufferCacheMode',
  'uniformBufferCacheMode',
  'queryResolveBufferCacheMode',
  'defaultBufferCacheMode',
];
/** And how the adapter is chosen. */
export const WEBGPU_OPTIONS = ['powerPreference', 'forceFallbackAdapter', ...SESSION_OPTIONS];

/**
 * Choose the adapter; return what it is. Raises Fault when there is none, or one in software that
 * was not asked for.
 * @param {Ort} ort
 * @param {Record<string, string>} given
 */
export async function useAdapter(ort, given) {
  const forceFallbackAdapter = given.forceFallbackAdapter === '1';
  const powerPreference = /** @type {GPUPowerPreference | undefined} */ (given.powerPreference);
  const adapter = await navigator.gpu?.requestAdapter({ forceFallbackAdapter, powerPreference });
  if (!adapter) throw new Fault('skipped', 'this Chromium has no WebGPU adapter');
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info;
  if (isFallbackAdapter && !forceFallbackAdapter) {
    const name = description || architecture;
    throw new Fault('skipped', `this Chromium has WebGPU in software only: ${name}`);
  }
  ort.env.webgpu.adapter = adapter;
  return { vendor, architecture, device, description };
}
