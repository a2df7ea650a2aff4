/** The arguments of the runner contract. */

import { statSync } from 'node:fs';
import { dirname } from 'node:path';

import { BadInput } from '../common/faults.mjs';

/** @import { Limits } from '../common/types.mjs' */

/**
 * @typedef {'latency' | 'load' | 'cases' | 'train'} Mode
 *
 * @typedef {object} Given
 * @property {Mode} mode
 * @property {string} provider
 * @property {string} record
 * @property {Limits} limits
 * @property {number} sessions
 * @property {number} skip
 * @property {string} model these are '' in a mode that does not need them
 * @property {string} inputs
 * @property {string} outputs
 * @property {string} arrivals
 * @property {string} cases
 * @property {string} [options]
 * @property {string} [library]
 * @property {string} [profile]
 * @property {TrainGiven} [train] in that mode
 *
 * @typedef {object} TrainGiven
 * @property {string} step a folder
 * @property {number} batch
 * @property {string} order
 * @property {number} until
 * @property {string} [state]
 * @property {string} checkpoint
 * @property {number} checkpointEvery
 * @property {string} [schedule]
 * @property {number} accumulate
 * @property {bigint} seed
 */

const NAMES = [
  'mode',
  'model',
  'inputs',
  'outputs',
  'provider',
  'options',
  'library',
  'record',
  'warmup',
  'min-runs',
  'max-seconds',
  'profile',
  'sessions',
  'arrivals',
  'cases',
  'skip',
  'step',
  'batch',
  'order',
  'until',
  'state',
  'checkpoint',
  'checkpoint-every',
  'schedule',
  'accumulate',
  'seed',
];
// More than anybody waits for, and the same in all languages.
const MOST_SECONDS = 1e9;
const LARGEST_SEED = 2n ** 63n - 1n;
/** @type {Record<Mode, string[]>} */
const NEEDED = {
  latency: ['model', 'inputs', 'outputs'],
  load: ['model', 'inputs', 'outputs', 'arrivals'],
  cases: ['cases'],
  train: ['step', 'inputs', 'batch', 'order', 'until', 'checkpoint'],
};

/**
 * Return the value of an argument, however wrong the others are.
 * @param {string[]} words
 * @param {string} name
 */
export function named(words, name) {
  const place = words.indexOf(`--${name}`);
  return place < 0 ? undefined : words[place + 1];
}

/**
 * Raises BadInput naming the argument.
 * @param {string[]} words
 * @returns {Given}
 */
export function parseArguments(words) {
  const texts = pairs(words);
  const mode = texts.get('mode') ?? 'latency';
  if (!isMode(mode)) {
    throw new BadInput(`--mode ${mode}: expected ${Object.keys(NEEDED).join(', ')}`);
  }
  for (const name of [...NEEDED[mode], 'record']) {
    if (!texts.has(name)) throw new BadInput(`--mode ${mode} needs --${name}`);
  }
  const file = (/** @type {string} */ name) => texts.get(name) ?? '';
  const model = NEEDED[mode].includes('model') ? file('model') : '';
  if (model && !statSync(model, { throwIfNoEntry: false })?.isFile()) {
    throw new BadInput(`${model}: no such model file`);
  }
  const profile = mode === 'latency' ? texts.get('profile') : undefined;
  // ONNX Runtime would end without one, and without a word.
  if (
    profile !== undefined &&
    !statSync(dirname(profile), { throwIfNoEntry: false })?.isDirectory()
  ) {
    throw new BadInput(`--profile ${profile}: there is no folder ${dirname(profile)}`);
  }
  return {
    mode,
    provider: texts.get('provider') ?? 'cpu',
    record: file('record'),
    limits: {
      warmup: whole(texts, 'warmup', 0, 20),
      minRuns: whole(texts, 'min-runs', 1, 100),
      maxSeconds: seconds(texts, 'max-seconds', 1),
    },
    sessions: whole(texts, 'sessions', 1, 1),
    skip: whole(texts, 'skip', 0, 0),
    model,
    inputs: file('inputs'),
    outputs: file('outputs'),
    arrivals: file('arrivals'),
    cases: file('cases'),
    options: texts.get('options'),
    library: texts.get('library'),
    profile,
    train: mode === 'train' ? trainArguments(texts) : undefined,
  };
}

/**
 * @param {Map<string, string>} texts
 * @returns {TrainGiven}
 */
function trainArguments(texts) {
  return {
    step: texts.get('step') ?? '',
    batch: whole(texts, 'batch', 1, 1),
    order: texts.get('order') ?? '',
    until: whole(texts, 'until', 0, 0),
    state: texts.get('state'),
    checkpoint: texts.get('checkpoint') ?? '',
    checkpointEvery: whole(texts, 'checkpoint-every', 0, 0),
    schedule: texts.get('schedule'),
    accumulate: whole(texts, 'accumulate', 1, 1),
    seed: seedOf(texts.get('seed') ?? '0'),
  };
}

/** @param {string} text */
function seedOf(text) {
  const seed = /^[0-9]+$/.test(text) ? BigInt(text) : -1n;
  if (seed >= 0n && seed <= LARGEST_SEED) return seed;
  throw new BadInput(`--seed ${text}: expected a whole number from 0 to 2^63 - 1`);
}

/**
 * @param {string} mode
 * @returns {mode is Mode}
 */
function isMode(mode) {
  return Object.hasOwn(NEEDED, mode);
}

/** @param {string[]} words */
function pairs(words) {
  /** @type {Map<string, string>} */
  const texts = new Map();
  for (let place = 0; place < words.length; place += 2) {
    const name = words[place].replace(/^--/, '');
    if (!words[place].startsWith('--') || !NAMES.includes(name)) {
      throw new BadInput(`argument '${words[place]}' is unknown: expected --${NAMES.join(', --')}`);
    }
    if (texts.has(name)) throw new BadInput(`argument --${name} is given twice, expected once`);
    if (place + 1 === words.length) throw new BadInput(`argument --${name} has no value`);
    texts.set(name, words[place + 1]);
  }
  return texts;
}

/**
 * @param {Map<string, string>} texts
 * @param {string} name
 * @param {number} least
 * @param {number} otherwise
 */
function whole(texts, name, least, otherwise) {
  const text = texts.get(name);
  if (text === undefined) return otherwise;
  const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new BadInput(`--${name} ${text}: expected a whole number >= ${least}`);
}

/**
 * @param {Map<string, string>} texts
 * @param {string} name
 * @param {number} otherwise
 */
function seconds(texts, name, otherwise) {
  const text = texts.get(name);
  if (text === undefined) return otherwise;
  const value = text.trim() === '' ? NaN : Number(text);
  if (Number.isFinite(value) && value >= 0) return Math.min(value, MOST_SECONDS);
  throw new BadInput(`--${name} ${text}: expected seconds >= 0`);
}
