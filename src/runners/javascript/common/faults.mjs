/** What can go wrong, each with the exit code that the runner contract gives it. */

/** What was given cannot be used; exit code 2. */
export class BadInput extends Error {}

/** A value that JavaScript's ONNX Runtime cannot give or take: a case's verdict, else bad input. */
export class Unsupported extends BadInput {}

/** The provider is not there; exit code 3. Never answered by falling back. */
export class Skip extends Error {}

/** The program that holds ONNX Runtime cannot go on after this; exit code 1. */
export class Crash extends Error {}

/** Memory was refused; exit code 1. */
export class OutOfMemory extends Error {}

/** Training came to numbers that are not finite; exit code 1. */
export class Diverged extends Error {
  /**
   * @param {string} message
   * @param {object} fields of the record, of the steps before
   */
  constructor(message, fields) {
    super(message);
    this.fields = fields;
  }
}

const NO_MEMORY = /bad_alloc|out of memory|failed to allocate|allocation failed/i;

/**
 * @typedef {{code: number, status: 'failed' | 'skipped', cause?: string, message: string}} Verdict
 */

/**
 * Return exit code, status and cause of what was thrown.
 * @param {unknown} thrown
 * @returns {Verdict}
 */
export function verdict(thrown) {
  const message = wordsOf(thrown);
  if (thrown instanceof Skip) return { code: 3, status: 'skipped', message };
  if (thrown instanceof BadInput) return { code: 2, status: 'failed', cause: 'bad-input', message };
  const cause = causeOf(thrown, message);
  return { code: 1, status: 'failed', cause, message };
}

/**
 * @param {unknown} thrown
 * @param {string} message
 */
function causeOf(thrown, message) {
  if (thrown instanceof Diverged) return 'diverged';
  if (thrown instanceof OutOfMemory || NO_MEMORY.test(message)) return 'out-of-memory';
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  const missing = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'];
  return missing.includes(code) ? 'missing-dependency' : 'crash';
}

/** @param {unknown} thrown */
export function wordsOf(thrown) {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/**
 * Return the fault that ONNX Runtime's refusal of a model is.
 * @param {string} model
 * @param {unknown} thrown
 */
export function refusalOf(model, thrown) {
  const words = wordsOf(thrown);
  if (isTrap(thrown)) return new Crash(words);
  if (NO_MEMORY.test(words)) return new OutOfMemory(words);
  if (/unsupported data type/i.test(words)) return new Unsupported(`${model}: ${words}`);
  return new BadInput(`${model}: ${words}`);
}

/**
 * Tell whether WebAssembly stopped: nothing that it holds can be used any more.
 * @param {unknown} thrown
 */
export function isTrap(thrown) {
  const { name } = thrown instanceof Error ? thrown : { name: '' };
  return name === 'RuntimeError' || /^Aborted\(/.test(wordsOf(thrown));
}

const KINDS = { BadInput, Unsupported, Skip, Crash, OutOfMemory };

/**
 * Return a fault in a form that can be sent.
 * @param {unknown} thrown
 */
export function pack(thrown) {
  const found = Object.entries(KINDS).filter(([, kind]) => thrown instanceof kind);
  // The most special one is the last that fits: Unsupported is a BadInput.
  return { kind: found.at(-1)?.[0] ?? 'Error', message: wordsOf(thrown) };
}

/**
 * Return what was thrown before it was packed.
 * @param {{kind: string, message: string}} packed
 * @returns {Error}
 */
export function unpack({ kind, message }) {
  const Kind = KINDS[/** @type {keyof typeof KINDS} */ (kind)] ?? Error;
  return new Kind(message);
}
