/** Mode `latency` of the runner contract: all rows once, then timed until it is known well. */

/** @import { Feed, Host, Limits, Output, Series, Facts } from './types.mjs' */

import { Engine } from './engine.mjs';
import { fullBatches } from './batches.mjs';
import { measure } from './interval.mjs';

const PROFILED_RUNS = 10;

/**
 * @typedef {object} Told what happens on the way and only its host can note
 * @property {() => unknown} firstResult the outputs of the first batch lie in the program's memory
 * @property {(outputs: Output[]) => unknown} outputs those of all rows
 * @property {() => unknown} measured the time to note the peak of memory
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
  await engine.step(batches[0]);
  await told.firstResult();
  await told.outputs(await engine.allRows(feed, batch));
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
