/** A headless Chromium that lives no longer than this process. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Fault } from '../javascript/faults.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const KEEPER = fileURLToPath(new URL('keeper.mjs', import.meta.url));
const TAIL = 2000;
// Of 107 bytes, less `/transect-`, `/org.chromium.Chromium.` and `/SingletonSocket` with six drawn
// characters behind each of the first two.
const LONGEST_SCRATCH = 44;

const FLAGS = [
  '--headless=new',
  '--no-first-run',
  '--no-default-browser-check',
  '--mute-audio',
  '--password-store=basic',
  '--js-flags=--expose-gc',
  // Nothing but the page: no updates, no reports, no start-up traffic.
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-breakpad',
  // A page that nobody looks at is not slowed down.
  '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding',
  '--disable-backgrounding-occluded-windows',
  // Containers have a small /dev/shm.
  '--disable-dev-shm-usage',
];
// A software adapter only where it is asked for.
const GPU_FLAGS = ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--ignore-gpu-blocklist'];
const SOFTWARE_FLAGS = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];

/** Return the path of Chromium. Raises Fault, saying what to install. */
export function findChromium() {
  const chosen = process.env.TRANSECT_CHROMIUM;
  if (chosen) {
    if (isProgram(chosen)) return chosen;
    throw new Fault('skipped', `TRANSECT_CHROMIUM is ${chosen}, expected a program`);
  }
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const paths = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = paths.find(isProgram);
  if (found) return found;
  throw new Fault(
    'skipped',
    `${NAMES.join(' or ')} is not on PATH: install Chromium, or set TRANSECT_CHROMIUM`,
  );
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export class Chromium {
  #keeper;
  #said = '';
  /** Raises Fault, with what Chromium said, when it has ended. */
  ended;

  /**
   * Open a page.
   * @param {string} program
   * @param {string} url
   * @param {'none' | 'software' | 'any'} gpu
   */
  constructor(program, url, gpu) {
    const profile = mkdtempSync(join(scratch(), 'transect-'));
    const gpuFlags = { none: ['--disable-gpu'], software: SOFTWARE_FLAGS, any: GPU_FLAGS }[gpu];
    // Root has no sandbox in Chromium.
    const root = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    const command = [program, `--user-data-dir=${profile}`, ...FLAGS, ...gpuFlags, ...root, url];
    const places = { TMPDIR: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile };
    this.#keeper = spawn(process.execPath, [KEEPER, profile, ...command], {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: { ...process.env, ...places },
      // Out of reach of signals to the driver's group, so that it outlives the driver.
      detached: true,
    });
    this.#keeper.stderr.setEncoding('utf8');
    this.#keeper.stderr.on('data', (text) => (this.#said = (this.#said + text).slice(-TAIL)));
    this.ended = once(this.#keeper, 'exit').then(() => {
      throw new Fault('crash', `Chromium ended: ${this.#said.trim() || 'it said nothing'}`);
    });
    this.ended.catch(() => {});
  }

  /** Return the sum over all its processes of the most memory that each held, in bytes. */
  peakMemory() {
    const processes = descendants(/** @type {number} */ (this.#keeper.pid));
    const kilobytes = processes.map((id) => parseInt(lineOf('VmHWM', id) ?? '0', 10));
    return 1024 * kilobytes.reduce((sum, one) => sum + one, 0);
  }

  /** End it; wait until nothing is left of it. */
  async close() {
    this.#keeper.stdin.end();
    if (this.#keeper.exitCode === null && this.#keeper.signalCode === null)
      await once(this.#keeper, 'exit');
  }
}

/** Return where the profile goes; Chromium makes a socket below it, whose path is short. */
function scratch() {
  return tmpdir().length <= LONGEST_SCRATCH ? tmpdir() : '/tmp';
}

/** @param {number} root */
function descendants(root) {
  const parents = new Map();
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name)) parents.set(Number(name), Number(lineOf('PPid', Number(name))));
  }
  const found = [root];
  for (const id of found) {
    for (const [child, parent] of parents) if (parent === id) found.push(child);
  }
  return found.slice(1);
}

/**
 * Return the value of a line of /proc/PID/status.
 * @param {string} name
 * @param {number} id of a process that may have ended
 */
function lineOf(name, id) {
  try {
    const text = readFileSync(`/proc/${id}/status`, 'utf8');
    return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1];
  } catch {
    return undefined;
  }
}
