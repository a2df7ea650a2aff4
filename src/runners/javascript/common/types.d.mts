import type { InferenceSession, Tensor } from 'onnxruntime-common';

/** The contract's name of an element type. */
export type Dtype =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'bool'
  | 'string'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64';

export type Numbers =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array;

/** One input: numbers row-major, strings one by one. */
export interface Input {
  name: string;
  dtype: Dtype;
  shape: number[];
  data: Numbers | string[];
}

/** All inputs of one run. */
export type Feed = Input[];

/** One output in the form of its file; what is no tensor has only words that say so. */
export type Output =
  | { name: string; dtype: string; shape: number[]; bytes: Uint8Array }
  | { name: string; kind: string };

/** The session options that are set, as docs/runner-contract.md names them. */
export interface Options {
  intra_op_num_threads?: number;
  inter_op_num_threads?: number;
  execution_mode?: 'sequential' | 'parallel';
  graph_optimization_level?: 'disabled' | 'basic' | 'extended' | 'all';
  enable_cpu_mem_arena?: boolean;
  enable_mem_pattern?: boolean;
  provider_options?: Record<string, string>;
  [entry: `${string}.${string}`]: string;
}

/** How long is measured: docs/runner-contract.md, "When it stops". */
export interface Limits {
  warmup: number;
  minRuns: number;
  maxSeconds: number;
}

/** Bind, run and copy of one iteration, in nanoseconds. */
export type Parts = [bind: number, run: number, copy: number];

/** Nanoseconds of each iteration. */
export interface Series {
  bind_ns: number[];
  run_ns: number[];
  copy_ns: number[];
  stop_reason: 'interval-reached' | 'time-limit';
}

/** What the record says of a session. */
export interface Facts {
  runtime_version: string;
  provider_used: string;
  session_options: Record<string, unknown>;
  options_not_set: string[];
  run_includes: string[];
}

/** What differs between Node and a browser: how a session of the one model is made. */
export interface Host {
  /** Make a session; with `profile` under ONNX Runtime's profiler and log severity `info`. */
  open(profile: boolean): Promise<Opened>;
  /** The step of the clock, in nanoseconds. */
  resolutionNs: number;
}

/** A session that was made, and the nanoseconds that it took. */
export interface Opened {
  session: InferenceSession;
  sessionNs: number;
  facts: Facts;
  /** What `new Tensor` does not do: it copies the inputs inside of `run`. */
  bindsInRun: boolean;
  TensorClass: typeof Tensor;
  endProfile(): void;
}

/** Shared by the workers of mode `load`: see serve.mjs. */
export interface Queue {
  /** Int32: the next request, and 1 when a worker had a fault. */
  control: SharedArrayBuffer;
  /** When requests arrive, nanoseconds from the start, exact up to 104 days. */
  arrivals: Float64Array;
  /** What is not begun then, in nanoseconds from the start, stays unserved. */
  limitNs: number;
}

/** The requests that one worker served: which, and nanoseconds from the start. */
export interface Served {
  request: number[];
  start: number[];
  end: number[];
}
