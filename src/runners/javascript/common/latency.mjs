/** Mode `latency` of the runner contract: all rows once, then timed until it is known well. */

/** @import { Feed, Host, Limits, Output, Series, Facts } from './types.mjs' */

import { Engine } from './engine.mjs';
import { fullBatches } from './batches.mjs';
import { measure } from './interval.mjs';

const PROFILED_RUNS = 10;

/**
 * @typedef {object} First what happens in the first runs and only their host can note
 * @property {() => unknown} firstResult the outputs of the first batch lie in the program's memory
 * @property {(outputs: Output[]) => unknown} outputs those of each batch as they come
 *
 * @typedef {First & {measured: () => unknown}} Told and when to note the peak of memory
 *
 * @typedef {object} Job
 * @property {Feed} feed
 * @property {number | null} batch
 * @property {Limits} limits
 * @property {boolean} profile
 *
 * @typedef {Facts & Series & {session_ns: number, profile_run_ns?: number[]}} Record
 */

/**
 * Run the first batch alone, then all rows.
 * @param {Engine} engine
 * @param {Feed} feed
 * @param {number | null} batch
 * @param {First} told
 */
export async function firstResults(engine, feed, batch, told) {
  await engine.step(fullBatches(feed, batch)[0]);
  await told.firstResult();
  await engine.allRows(feed, batch, told.outputs);
}

/**
 * Run all rows, then measure; return the record's fields.
 * @param {Host} host
 * @param {Job} job
 * @param {Told} told
 * @returns {Promise<Record>}
 */
export async function runLatency(host, { feed, batch, limits, profile }, told) {
  const engine = new Engine(await host.open(false));
  engine.check(feed, batch);
  const batches = fullBatches(feed, batch);
  await firstResults(engine, feed, batch, told);
  const series = await measure((part) => engine.step(part), batches, limits, host.resolutionNs);
  await told.measured();
  const record = { ...engine.facts, ...series, session_ns: engine.sessionNs };
  if (!profile) return record;
  const profiled = new Engine(await host.open(true));
  const times = [];
  for (let run = 0; run < PROFILED_RUNS; run++) times.push((await profiled.step(batches[0]))[1]);
  profiled.endProfile();
  return { ...record, profile_run_ns: times };
}
