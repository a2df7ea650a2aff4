/** The runner contract around the work: arguments, record, exit code. */

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { Diverged, verdict, wordsOf } from '../common/faults.mjs';
import { named, parseArguments } from './arguments.mjs';
import { runCases } from './cases.mjs';
import { removeLeft, writeCheckpoint } from './checkpoint.mjs';
import { readArrivals, readHeader } from './inputs.mjs';
import { cpusAllowed } from './process_facts.mjs';
import { readOptions } from './read_options.mjs';
import { readTraining } from './training.mjs';
import { OutputWriter } from './write_outputs.mjs';

/** @import { Options, Output } from '../common/types.mjs' */
/** @import { Trained } from '../common/train/types.mjs' */
/** @import { Given } from './arguments.mjs' */
/** @import { RunCase } from './cases.mjs' */
/** @import { Header } from './inputs.mjs' */
/** @import { ReadTraining } from './training.mjs' */

/**
 * @typedef {(outputs: Output[]) => void} Write writes those of each batch as they come
 * @typedef {(pieces: Uint8Array[]) => void} Save writes a checkpoint
 *
 * @typedef {object} Runner what one runtime does; latency and load return the record's fields
 * @property {(given: Given, options: Options) => void | Promise<void>} start may raise Skip
 * @property {(header: Header, write: Write) => Promise<object>} latency
 * @property {(header: Header, arrivals: Float64Array, write: Write) => Promise<object>} load
 * @property {RunCase} runCase
 * @property {(read: ReadTraining, save: Save) => Promise<Trained>} train
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
  let code = 0;
  let record;
  try {
    const given = parseArguments(words);
    head = { ...head, mode: given.mode, provider_requested: given.provider };
    const fields = await work(given, runner);
    record = fields && { ...head, status: 'ok', ...fields };
  } catch (thrown) {
    const failed = fail(name, thrown);
    code = failed.code;
    // Of cases the record is what came of each: a fault is told by the exit code and the message.
    const fields = thrown instanceof Diverged ? thrown.fields : {};
    record = head.mode === 'cases' ? null : { ...head, ...fields, ...failed.said };
  }
  const path = named(words, 'record');
  if (path === undefined || record === null) return code;
  try {
    writeRecord(path, record);
  } catch (thrown) {
    process.stderr.write(`${name}: --record ${path}: cannot be written: ${wordsOf(thrown)}\n`);
    // What went wrong before says more.
    code ||= 1;
  }
  return code;
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
      (model, header, write) => runner.runCase(model, header, write),
    );
    return null;
  }
  if (given.mode === 'train') return train(given, options, runner);
  const header = readHeader(given.inputs);
  const arrivals = given.mode === 'load' ? readArrivals(given.arrivals) : null;
  await runner.start(given, options);
  const writer = new OutputWriter(given.outputs, header);
  const write = (/** @type {Output[]} */ outputs) => writer.append(outputs);
  const record = await (arrivals
    ? runner.load(header, arrivals, write)
    : runner.latency(header, write));
  return { ...record, outputs: writer.facts, ...conditions() };
}

/**
 * Return the record's fields of mode `train`. Raises Diverged, which has them too.
 * @param {Given} given
 * @param {Options} options
 * @param {Runner} runner
 */
async function train(given, options, runner) {
  const read = readTraining(given);
  const checkpoint = given.train?.checkpoint ?? '';
  removeLeft(checkpoint);
  await runner.start(given, options);
  const save = (/** @type {Uint8Array[]} */ pieces) => writeCheckpoint(checkpoint, pieces);
  const { record, diverged } = await runner.train(read, save);
  const { step_graph } = read.training.manifest;
  const fields = { ...record, state: checkpoint, step_graph, ...conditions() };
  if (diverged !== null) throw new Diverged(diverged, fields);
  return fields;
}

function conditions() {
  return { cpus_allowed: cpusAllowed(), input_residency: 'host' };
}

/**
 * Say what went wrong, on one line; return the exit code, and what the record says of it.
 * @param {string} name
 * @param {unknown} thrown
 */
function fail(name, thrown) {
  const { code, status, cause, message } = verdict(thrown);
  const line = `${status === 'skipped' ? 'skipped: ' : ''}${message}`.replace(/\s+/g, ' ').trim();
  process.stderr.write(`${name}: ${line}\n`);
  const said = status === 'skipped' ? { status, reason: message } : { status, cause, message };
  return { code, said };
}

/**
 * @param {string} path
 * @param {Record<string, unknown>} record
 */
function writeRecord(path, record) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    writeFileSync(temporary, `${JSON.stringify(record)}\n`);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}
