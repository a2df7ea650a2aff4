/** A session of ONNX Runtime: its options, one step, its outputs. Node.js and the page have it. */

import { Fault, isTrap, wordsOf } from './faults.mjs';
import { ROLE, codeOf } from './plan.mjs';

/** @import { InferenceSession, OnnxValue, Tensor } from 'onnxruntime-common' */
/** @import { Plan } from './plan.mjs' */
/** @import { Bytes, Feed, Host, Opened, Parts } from './types.mjs' */

// What it takes to load ONNX Runtime before anything is timed: ONNX IR 7, opset 13,
// y = Identity(x), float32[1].
const IDENTITY =
  'CAcSADo3ChAKAXgSAXkiCElkZW50aXR5EgFnWg8KAXgSCgoICAESBAoCCAFiDwoBeRIKCggIARIECgIIAUIECgAQDQ==';
export const TINY_MODEL = Uint8Array.from(atob(IDENTITY), (letter) => letter.charCodeAt(0));

const SEVERITY = { error: 3, info: 1 };

/**
 * Return ONNX Runtime's options, without the provider's, and the names of what cannot be set.
 * @param {Plan} plan
 * @param {boolean} profiled
 * @param {(key: string) => boolean} [reaches] tells whether the binding hands an option on
 */
export function sessionOptions(plan, profiled, reaches = () => true) {
  const asked = plan.all(ROLE.option);
  const extra = /** @type {Record<string, string>} */ ({});
  const options = /** @type {Record<string, unknown>} */ ({ extra });
  options.logSeverityLevel = profiled ? SEVERITY.info : SEVERITY.error;
  options.enableProfiling = profiled;
  for (const { name, text } of asked.filter(({ name: key }) => reaches(key))) {
    // The package has the contract's words in its own spelling, as `intraOpNumThreads`.
    const word = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    if (name.includes('.')) extra[name] = text;
    else if (name.endsWith('_threads')) options[word] = Number(text);
    else options[word] = name.startsWith('enable_') ? text === '1' : text;
  }
  const notSet = asked.map(({ name }) => name).filter((name) => !reaches(name));
  return { options: /** @type {InferenceSession.SessionOptions} */ (options), notSet };
}

/**
 * Return the provider's options that some keys name, and the names of the others.
 * @param {Plan} plan
 * @param {string[]} keys
 */
export function providerOptions(plan, keys) {
  // The CPU takes none in any language.
  const isCpu = plan.text(ROLE.provider) === 'cpu';
  const values = /** @type {Record<string, string>} */ ({});
  const notSet = new Set();
  for (const { name, text } of plan.all(ROLE.providerOption)) {
    if (keys.includes(name)) values[name] = text;
    else notSet.add(isCpu ? 'provider_options' : `provider_options.${name}`);
  }
  return { values, notSet: [...notSet] };
}

export class Engine {
  #session;
  #Tensor;
  #bindsInRun;
  #outputs;
  /** @type {(tensors: Record<string, Tensor>) => Promise<Record<string, OnnxValue>>} */
  #run;
  /** Outputs of the last step by name. @type {Record<string, OnnxValue>} */
  results = {};

  /**
   * Raises Fault for inputs that the session would leave out, and where no output is a tensor.
   * @param {Opened} opened
   * @param {Host} host
   * @param {number} group
   */
  constructor({ session, facts, sessionNs }, { plan, TensorClass }, group) {
    this.facts = { ...facts, session_ns: sessionNs };
    this.#session = session;
    this.#Tensor = TensorClass;
    this.#bindsInRun = facts.run_includes.includes('bind');
    this.#outputs = plan.all(ROLE.output, group);
    // What has a default is no input to this binding, which would leave it out without a word.
    const given = plan.all(ROLE.input, group).map(({ name }) => name);
    if (given.some((name) => !session.inputNames.includes(name))) {
      const what = `the session takes [${session.inputNames}], [${given}] are given`;
      throw new Fault('unsupported', `${what}: JavaScript's ONNX Runtime takes no others`);
    }
    const fetches = this.#outputs.filter(({ dtype }) => dtype).map(({ name }) => name);
    const all = fetches.length === session.outputNames.length;
    this.#run = all ? (feeds) => session.run(feeds) : (feeds) => session.run(feeds, fetches);
    if (fetches.length === 0) throw this.noTensors();
  }

  /** Return the fault that outputs which are no tensors are. */
  noTensors() {
    const names = this.#outputs.filter(({ dtype }) => !dtype).map(({ name }) => name);
    const what = `outputs [${names}] are no tensors`;
    return new Fault('unsupported', `${what}, and JavaScript's ONNX Runtime gives no other values`);
  }

  /**
   * Bind, run, and have the outputs in `results`.
   * @param {Feed} feed
   * @returns {Promise<Parts>}
   */
  async step(feed) {
    const t0 = performance.now();
    /** @type {Record<string, Tensor>} */
    const tensors = {};
    for (const { name, dtype, data, shape } of feed) {
      const type = /** @type {any} */ (dtype);
      tensors[name] = new this.#Tensor(type, /** @type {any} */ (data), shape);
    }
    const t1 = this.#bindsInRun ? t0 : performance.now();
    try {
      this.results = await this.#run(tensors);
    } catch (thrown) {
      throw isTrap(thrown) ? new Fault('crash', wordsOf(thrown)) : thrown;
    }
    const t2 = performance.now();
    return [nanoseconds(t1 - t0), nanoseconds(t2 - t1), 0];
  }

  /**
   * Run every row once, and write the outputs as they come; return what the last line says of them.
   * @param {Feed[]} parts the batches, of which the last may be partial
   * @param {Host} host
   */
  async allRows(parts, host, group = 0) {
    const folder = host.plan.one(ROLE.outputs, group);
    /** @type {([dtype: number, shape: number[]] | null)[]} */
    const said = this.#outputs.map(() => null);
    for (const part of parts) {
      await this.step(part);
      for (const [index, { name, dtype }] of this.#outputs.entries()) {
        if (!dtype) continue;
        const tensor = /** @type {Tensor} */ (this.results[name]);
        const shape = [...tensor.dims];
        if (host.plan.batch && shape[0] !== part[0].shape[0]) {
          const wanted = `a first axis of the batch's ${part[0].shape[0]} rows`;
          const found = `output '${name}' has shape [${shape}]`;
          throw new Fault('bad-input', `${found}, expected ${wanted}`);
        }
        const before = said[index];
        if (before && String(before[1].slice(1)) !== String(shape.slice(1))) {
          throw new Fault('bad-input', `output '${name}' has shape [${shape}], before [${before[1]}]`);
        }
        await host.write(folder, `output-${index}.bin`, bytesOf(tensor), before ? 'a' : 'w');
        if (before) before[1][0] += shape[0];
        else said[index] = [codeOf(tensor.type), shape];
      }
    }
    return said;
  }

  endProfile() {
    this.#session.endProfiling();
  }

  /** Give its memory back: sessions are not collected. */
  async close() {
    await this.#session.release();
  }
}

/**
 * @param {Tensor} tensor
 * @returns {Bytes}
 */
export function bytesOf({ data }) {
  if (!Array.isArray(data)) {
    const { buffer, byteOffset, byteLength } = data;
    return new Uint8Array(/** @type {ArrayBuffer} */ (buffer), byteOffset, byteLength);
  }
  const texts = data.map((text) => new TextEncoder().encode(text));
  const whole = new Uint8Array(texts.reduce((sum, { length }) => sum + 4 + length, 0));
  let place = 0;
  for (const text of texts) {
    new DataView(whole.buffer).setUint32(place, text.length, true);
    whole.set(text, place + 4);
    place += 4 + text.length;
  }
  return whole;
}

/** @param {number} milliseconds */
export function nanoseconds(milliseconds) {
  return Math.round(milliseconds * 1e6);
}
