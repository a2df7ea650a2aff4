/** Reads what mode `train` of the runner contract is given, and checks it. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { BadInput, wordsOf } from '../common/faults.mjs';
import { isObject, short } from '../common/json.mjs';
import { checkManifest } from '../common/train/manifest.mjs';
import { readState, stepOf } from '../common/train/state.mjs';
import { readBytes, readHeader, readTensors } from './inputs.mjs';
import { readJson } from './json.mjs';

/** @import { Manifest, Schedule, Training } from '../common/train/types.mjs' */
/** @import { Entry } from './inputs.mjs' */
/** @import { Given, TrainGiven } from './arguments.mjs' */

/**
 * @typedef {object} TrainFiles
 * @property {Record<'step' | 'accumulate', string>} graphs
 * @property {string} state that is begun with
 * @property {Entry[]} entries of the data, in the manifest's order
 *
 * @typedef {{training: Training, files: TrainFiles}} ReadTraining
 */

/**
 * Raises BadInput naming what cannot be used.
 * @param {Given} given
 * @returns {ReadTraining}
 */
export function readTraining({ train: given, inputs }) {
  if (!given) throw new BadInput('mode train was not asked for');
  const { batch, accumulate, until } = given;
  const manifest = checkManifest(
    readJson(join(given.step, 'manifest.json')),
    join(given.step, 'manifest.json'),
  );
  const graphs = graphFiles(given, manifest);
  const schedule = readSchedule(given, manifest);
  const entries = dataEntries(inputs, manifest, batch);
  const rows = entries[0]?.shape[0] ?? 0;
  const order = readOrder(given.order, until * accumulate * batch, rows);
  const stateFile = startOf(given, manifest);
  const state = readState(readFile(stateFile), manifest, stateFile);
  const step = stepOf(state, manifest);
  if (step > until) {
    throw new BadInput(`${stateFile}: is of step ${step}, expected one up to --until ${until}`);
  }
  const training = {
    ...{ manifest, order, state, batch, accumulate, schedule, until },
    data: readTensors(entries),
    seed: given.seed,
    checkpointEvery: given.checkpointEvery,
  };
  return { training, files: { graphs, state: stateFile, entries } };
}

/**
 * Return the file of the state to begin with: the checkpoint where it is there.
 * @param {TrainGiven} given
 * @param {Manifest} manifest
 */
function startOf(given, manifest) {
  if (existsSync(given.checkpoint)) return given.checkpoint;
  return given.state ?? join(given.step, manifest.state_file);
}

/** @param {string} path */
function readFile(path) {
  try {
    return readBytes(path, statSync(path).size);
  } catch (thrown) {
    throw new BadInput(`${path}: the state cannot be read: ${wordsOf(thrown)}`);
  }
}

/**
 * @param {TrainGiven} given
 * @param {Manifest} manifest
 */
function graphFiles({ step: folder, accumulate }, { graphs, step_graph: expected }) {
  if (accumulate > 1 && !graphs.accumulate) {
    throw new BadInput(
      `--accumulate ${accumulate}: ${folder} has no graph 'accumulate', expected 1`,
    );
  }
  const files = {
    step: join(folder, graphs.step.file),
    accumulate: join(folder, graphs.accumulate?.file ?? ''),
  };
  for (const file of accumulate > 1 ? Object.values(files) : [files.step]) {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
      throw new BadInput(`${file}: no such graph`);
    }
  }
  checkSum(files.step, expected);
  return files;
}

/**
 * State files name the step by this sum: one bit altered would train another model in silence.
 * @param {string} file
 * @param {string} expected
 */
function checkSum(file, expected) {
  const found = createHash('sha256').update(readFileSync(file)).digest('hex');
  if (found !== expected) {
    throw new BadInput(`${file} has the sha256 ${found}, expected ${expected}`);
  }
}

/**
 * @param {TrainGiven} given
 * @param {Manifest} manifest
 * @returns {Schedule}
 */
function readSchedule({ schedule: path, until }, { hyper }) {
  if (path === undefined) return {};
  const given = readJson(path);
  if (!isObject(given)) throw new BadInput(`${path}: expected a JSON object, got ${short(given)}`);
  const known = hyper.map(({ name }) => name);
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) {
      throw new BadInput(
        `${path}: hyper-parameter '${name}' is unknown: expected ${known.join(', ')}`,
      );
    }
    const list = Array.isArray(value) ? value : [value];
    if (!list.every(Number.isFinite)) {
      throw new BadInput(
        `${path}: '${name}' is ${short(value)}, expected a number or a list of numbers`,
      );
    }
    if (Array.isArray(value) && value.length < until) {
      throw new BadInput(
        `${path}: '${name}' has ${value.length} numbers, --until ${until} takes one for each step`,
      );
    }
  }
  return /** @type {Schedule} */ (given);
}

/**
 * Return the data's entries, in the order of the manifest, which they are of.
 * @param {string} folder
 * @param {Manifest} manifest
 * @param {number} batch
 */
function dataEntries(folder, { data }, batch) {
  const header = join(folder, 'header.json');
  const { entries } = readHeader(folder);
  const names = data.map(({ name }) => name);
  if (entries.length !== data.length || !entries.every(({ name }) => names.includes(name))) {
    const got = entries.map(({ name }) => name);
    throw new BadInput(`${header}: expected the tensors [${names}], got [${got}]`);
  }
  const sorted = data.map(
    ({ name }) => /** @type {Entry} */ (entries.find((entry) => entry.name === name)),
  );
  sorted.forEach((entry, index) => {
    const { dtype, shape } = data[index];
    const isFit =
      entry.shape.length === shape.length &&
      shape.every((size, axis) =>
        typeof size === 'string' ? true : size === (axis ? entry.shape[axis] : batch),
      );
    if (entry.dtype !== dtype || !isFit || entry.shape[0] !== sorted[0].shape[0]) {
      throw new BadInput(
        `${header}: tensor '${entry.name}' is ${entry.dtype}[${entry.shape}], a step of ${batch} ` +
          `rows takes ${dtype}[${shape}] from as many rows as '${sorted[0].name}' has`,
      );
    }
  });
  return sorted;
}

/**
 * @param {string} path
 * @param {number} least how many rows are needed
 * @param {number} rows how many the data have
 */
function readOrder(path, least, rows) {
  let raw;
  try {
    raw = readFileSync(path);
  } catch (thrown) {
    throw new BadInput(`${path}: cannot be read: ${wordsOf(thrown)}`);
  }
  if (raw.length % 8 || raw.length / 8 < least) {
    throw new BadInput(
      `${path}: expected int64 rows, ${least} at least, of all batches; got ${raw.length} bytes`,
    );
  }
  const order = new Float64Array(least);
  for (let index = 0; index < least; index++) {
    const row = raw.readBigInt64LE(8 * index);
    order[index] = Number(row);
    if (row < 0n || row >= rows) {
      throw new BadInput(`${path}: row ${row} at ${index}: the data have rows 0 to ${rows - 1}`);
    }
  }
  return order;
}
