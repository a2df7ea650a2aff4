/** The runner contract around the work: arguments, record, exit code. */

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { verdict, wordsOf } from '../common/faults.mjs';
import { named, parseArguments } from './arguments.mjs';
import { runCases } from './cases.mjs';
import { readArrivals, readHeader } from './inputs.mjs';
import { cpusAllowed } from './process_facts.mjs';
import { readOptions } from './read_options.mjs';
import { writeOutputs } from './write_outputs.mjs';

/** @import { Options, Output } from '../common/types.mjs' */
/** @import { Given } from './arguments.mjs' */
/** @import { RunCase } from './cases.mjs' */
/** @import { Header } from './inputs.mjs' */

/**
 * @typedef {(outputs: Output[]) => void} Write writes the outputs of all rows
 *
 * @typedef {object} Runner what one runtime does; latency and load return the record's fields
 * @property {(given: Given, options: Options) => void | Promise<void>} start may raise Skip
 * @property {(header: Header, write: Write) => Promise<object>} latency
 * @property {(header: Header, arrivals: Float64Array, write: Write) => Promise<object>} load
 * @property {RunCase} runCase
 */

/**
 * Do what the arguments say; return the exit code.
 * @param {string} name of the runner
 * @param {Runner} runner
 * @param {string[]} words the arguments
 */
export async function runProgram(name, runner, words) {
  /** @type {Record<string, unknown>} */
  let head = { runner: name };
  try {
    const given = parseArguments(words);
    head = { ...head, mode: given.mode, provider_requested: given.provider };
    const record = await work(given, runner);
    if (record) writeRecord(given.record, { ...head, status: 'ok', ...record });
    return 0;
  } catch (thrown) {
    return fail(name, head, named(words, 'record'), thrown);
  }
}

/**
 * Return the record's fields; none of `cases`, whose record grows with each of them.
 * @param {Given} given
 * @param {Runner} runner
 */
async function work(given, runner) {
  const options = readOptions(given.options);
  if (given.mode === 'cases') {
    await runCases(
      given,
      () => runner.start(given, options),
      (model, header) => runner.runCase(model, header),
    );
    return null;
  }
  const header = readHeader(given.inputs);
  const arrivals = given.mode === 'load' ? readArrivals(given.arrivals) : null;
  await runner.start(given, options);
  const rows = header.batch === null ? null : header.entries[0].shape[0];
  let written = {};
  const write = (/** @type {Output[]} */ outputs) => {
    written = { outputs: { header: writeOutputs(given.outputs, outputs), rows } };
  };
  const record = await (arrivals
    ? runner.load(header, arrivals, write)
    : runner.latency(header, write));
  return { ...record, ...written, cpus_allowed: cpusAllowed(), input_residency: 'host' };
}

/**
 * Say what went wrong, on one line and in the record; return the exit code.
 * @param {string} name
 * @param {Record<string, unknown>} head
 * @param {string | undefined} path of the record
 * @param {unknown} thrown
 */
function fail(name, head, path, thrown) {
  const { code, status, cause, message } = verdict(thrown);
  const line = `${status === 'skipped' ? 'skipped: ' : ''}${message}`.replace(/\s+/g, ' ').trim();
  process.stderr.write(`${name}: ${line}\n`);
  const said = status === 'skipped' ? { reason: message } : { cause, message };
  // Of cases the record is what came of each: a fault is told by the exit code and the message.
  if (path === undefined || head.mode === 'cases') return code;
  try {
    writeRecord(path, { ...head, status, ...said });
  } catch (error) {
    process.stderr.write(`${name}: ${path}: the record cannot be written: ${wordsOf(error)}\n`);
  }
  return code;
}

/**
 * @param {string} path
 * @param {Record<string, unknown>} record
 */
function writeRecord(path, record) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}`);
  writeFileSync(temporary, `${JSON.stringify(record)}\n`);
  renameSync(temporary, path);
}
