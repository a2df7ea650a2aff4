import type { InferenceSession, Tensor } from 'onnxruntime-common';

import type { Plan } from './plan.mjs';

type Floats = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;
type Signed = Int8Array<ArrayBuffer> | Int16Array<ArrayBuffer> | Int32Array<ArrayBuffer>;
type Unsigned = Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;
type Large = BigInt64Array<ArrayBuffer> | BigUint64Array<ArrayBuffer>;
export type Numbers = Floats | Signed | Unsigned | Large;
export type Bytes = Uint8Array<ArrayBuffer>;

/** A row of the plan's table; `index` is its number. */
export interface Entry {
  index: number;
  role: number;
  group: number;
  dtype: number;
  name: string;
  text: string;
  offset: number;
  size: number;
  shape: number[];
  link: number;
}

/** One input: numbers row-major, strings one by one. */
export interface Input {
  name: string;
  dtype: string;
  shape: number[];
  data: Numbers | string[];
}

/** All inputs of one run. */
export type Feed = Input[];

/** Bind, run and copy of one iteration, in nanoseconds. */
export type Parts = [bind: number, run: number, copy: number];

/** What the last line says of a session. */
export interface Facts {
  runtime_version: string;
  provider_used: string;
  options_not_set: string[];
  run_includes: string[];
}

/** A session that was made, and the nanoseconds that it took. */
export interface Opened {
  session: InferenceSession;
  sessionNs: number;
  facts: Facts;
}

/** Who gives turns to programs, each of which waits while another runs. */
export interface Taken {
  /** Say 'r', ready, or 'd', done; return the iterations of the next turn, 0: no more. */
  next(said: 'r' | 'd'): Promise<number>;
}

/** What differs between Node.js and a page: where sessions come from, and where results go. */
export interface Host {
  plan: Plan;
  TensorClass: typeof Tensor;
  /** The step of the clock, in nanoseconds. */
  resolutionNs: number;
  read(entry: Entry): Bytes | Promise<Bytes>;
  /** Make a session of a model or graph; with `profiled` under ONNX Runtime's profiler. */
  open(file: Entry, profiled: boolean): Promise<Opened>;
  /** Return the file of the profile that `end` ends. */
  profileFile(end: () => void): string | Promise<string>;
  write(folder: Entry, file: string, bytes: Bytes, flag: 'w' | 'a'): unknown;
  save(file: string, pieces: Bytes[]): unknown;
  say(line: object): unknown;
  /** CLOCK_MONOTONIC; and a clock that all workers of a load have. */
  monotonicNs(): number | Promise<number>;
  sharedNs(): number;
  /** Return who gives turns, if any are to be taken; a page takes none. */
  turns?(): Promise<Taken | undefined>;
  /** Keep what the system says of the process now. */
  snapshot(): unknown;
}
