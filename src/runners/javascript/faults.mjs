/** What can go wrong, and how the runner contract calls it. */

/**
 * @typedef {'bad-input' | 'unsupported' | 'skipped' | 'crash' | 'out-of-memory'
 *   | 'missing-dependency'} Kind `unsupported`: a value that JavaScript's ONNX Runtime cannot give
 *   or take, a case's verdict and else bad input; after a `crash` the program cannot go on
 */

const NO_MEMORY = /bad_alloc|out of memory|failed to allocate|allocation failed/i;
const MISSING = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'];

export class Fault extends Error {
  /**
   * @param {Kind} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** @param {unknown} thrown */
export function wordsOf(thrown) {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/**
 * Tell whether WebAssembly stopped: nothing that it holds can be used any more.
 * @param {unknown} thrown
 */
export function isTrap(thrown) {
  return (
    (thrown instanceof Error && thrown.name === 'RuntimeError') ||
    /^Aborted\(/.test(wordsOf(thrown))
  );
}

/**
 * Return the kind of what was thrown, in a form that can be sent.
 * @param {unknown} thrown
 * @returns {{kind: Kind, message: string}}
 */
export function pack(thrown) {
  const message = wordsOf(thrown);
  if (thrown instanceof Fault) return { kind: thrown.kind, message };
  if (NO_MEMORY.test(message)) return { kind: 'out-of-memory', message };
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  return { kind: MISSING.includes(code) ? 'missing-dependency' : 'crash', message };
}

/**
 * Return the fault that ONNX Runtime's refusal of a model is.
 * @param {string} model
 * @param {unknown} thrown
 */
export function refusalOf(model, thrown) {
  const words = wordsOf(thrown);
  if (isTrap(thrown)) return new Fault('crash', words);
  if (NO_MEMORY.test(words)) return new Fault('out-of-memory', words);
  const kind = /unsupported data type/i.test(words) ? 'unsupported' : 'bad-input';
  return new Fault(kind, `${model}: ${words}`);
}

/**
 * Return the exit code and the last line for what was thrown.
 * @param {unknown} thrown
 */
export function verdict(thrown) {
  const { kind, message } = pack(thrown);
  if (kind === 'skipped') return { code: 3, message, line: { status: kind, reason: message } };
  const isBad = kind === 'bad-input' || kind === 'unsupported';
  const cause = isBad ? 'bad-input' : kind;
  return { code: isBad ? 2 : 1, message, line: { status: 'failed', cause, message } };
}
