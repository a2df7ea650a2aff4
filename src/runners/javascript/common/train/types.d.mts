import type { Dtype, Facts, Feed, Numbers } from '../types.mjs';

/** A data tensor of a step; its first axis is the batch. A name is any size. */
export interface DataTensor {
  name: string;
  dtype: Dtype;
  shape: (number | string)[];
}

/** A tensor of the state; `next` is the output that holds its next value. */
export interface StateTensor {
  name: string;
  role: string;
  dtype: Dtype;
  shape: number[];
  next: string | null;
}

/** A graph of the step: what it takes and gives, by name. */
export interface Graph {
  file: string;
  inputs: string[];
  outputs: string[];
}

/** manifest.json of a portable training step, checked: docs/portable-training-step.md. */
export interface Manifest {
  step_graph: string;
  state_file: string;
  data: DataTensor[];
  hyper: { name: string; dtype: Dtype; default: number }[];
  seed: { name: string; dtype: Dtype } | null;
  state: StateTensor[];
  metrics: { name: string; dtype: Dtype }[];
  graphs: { step: Graph; accumulate?: Graph } & Record<string, Graph>;
}

/** The numbers of the state by name. */
export type State = Map<string, Numbers>;

/** Hyper-parameters by name: one number for all steps, or one for each step from 0. */
export type Schedule = Record<string, number | number[]>;

/** All that the steps need, read and checked. */
export interface Training {
  manifest: Manifest;
  /** All rows of the data tensors, in the manifest's order. */
  data: Feed;
  /** Rows of the batches, one batch behind the other, from step 0 on. */
  order: Float64Array;
  state: State;
  batch: number;
  accumulate: number;
  schedule: Schedule;
  seed: bigint;
  /** Go on until the state's `step` is that. */
  until: number;
  /** After how many steps a checkpoint is written; 0: only at the end. */
  checkpointEvery: number;
}

/** What the record says of the steps. */
export interface Progress {
  first_step: number;
  losses: number[];
  metrics: Record<string, number[]>;
  gather_ns: number[];
  bind_ns: number[];
  run_ns: number[];
  read_ns: number[];
  checkpoints: { step: number; ns: number }[];
}

/** The end of a training; `diverged` says how it ended when that was before its time. */
export interface Trained {
  record: Facts & Progress & { session_ns: number };
  diverged: string | null;
}
