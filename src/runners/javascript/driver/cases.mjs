/** Mode `cases` of the runner contract: many small models, each run once, without times. */

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

import { BadInput, Crash, Skip, Unsupported, wordsOf } from '../common/faults.mjs';
import { isObject } from '../common/json.mjs';
import { readHeader } from './inputs.mjs';
import { readJson } from './json.mjs';
import { OutputWriter } from './write_outputs.mjs';

/** @import { Given } from './arguments.mjs' */
/** @import { Header } from './inputs.mjs' */
/** @import { Write } from './program.mjs' */

/**
 * @typedef {{name: string, model: string, inputs: string, outputs: string}} Case
 * @typedef {(model: string, header: Header, write: Write) => Promise<unknown>} RunCase
 */

const KEYS = ['name', 'model', 'inputs', 'outputs'];

/**
 * Run the cases from `--skip` on; say of each what came of it. Raises what ends the program.
 * @param {Given} given
 * @param {() => void | Promise<void>} start
 * @param {RunCase} runCase
 */
export async function runCases(given, start, runCase) {
  const cases = readCases(given.cases);
  await start();
  mkdirSync(dirname(given.record), { recursive: true });
  const file = openSync(given.record, 'a');
  const say = (/** @type {object} */ line) => writeSync(file, `${JSON.stringify(line)}\n`);
  for (let index = given.skip; index < cases.length; index++) {
    const told = { case: index, name: cases[index].name };
    say({ ...told, status: 'started' });
    say({ ...told, ...(await outcome(cases[index], runCase)) });
  }
  closeSync(file);
}

/**
 * @param {Case} one
 * @param {RunCase} runCase
 */
async function outcome(one, runCase) {
  try {
    const header = readHeader(one.inputs);
    const writer = new OutputWriter(one.outputs, header);
    await runCase(one.model, header, (outputs) => writer.append(outputs));
    return { status: 'ok' };
  } catch (thrown) {
    if (thrown instanceof Crash || thrown instanceof Skip) throw thrown;
    const status = thrown instanceof Unsupported ? 'unsupported' : 'failed';
    return { status, message: wordsOf(thrown) };
  }
}

/**
 * @param {string} path
 * @returns {Case[]}
 */
function readCases(path) {
  const cases = readJson(path);
  if (!Array.isArray(cases)) throw new BadInput(`${path}: expected a list of cases`);
  for (const one of cases) {
    if (!isObject(one) || !KEYS.every((key) => typeof one[key] === 'string')) {
      const got = JSON.stringify(one).slice(0, 200);
      throw new BadInput(`${path}: expected cases with ${KEYS.join(', ')}, got ${got}`);
    }
  }
  return cases;
}
