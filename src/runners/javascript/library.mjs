/** Loads ONNX Runtime: the library that is asked for, under the package's binding. */

import { realpathSync } from 'node:fs';
import { constants } from 'node:os';

import { BadInput, wordsOf } from './common/faults.mjs';
import { mappedFiles } from './driver/process_facts.mjs';

const MARK = 'libonnxruntime.so';
// Of <dlfcn.h>: it stays although Node closes it.
const RTLD_NODELETE = 0x1000;

/**
 * Load a shared library of ONNX Runtime before the package's own.
 *
 * The binding asks for it by its soname, which then is there already. Node takes it for an add-on
 * and refuses it as such; what counts is that it is mapped. Raises BadInput when it is not.
 * @param {string} file
 */
export function preload(file) {
  let refusal = '';
  try {
    process.dlopen({ exports: {} }, file, constants.dlopen.RTLD_NOW | RTLD_NODELETE);
  } catch (thrown) {
    refusal = wordsOf(thrown);
  }
  if (!mappedFiles('/').includes(realpath(file))) {
    throw new BadInput(`--library ${file}: expected a shared library of ONNX Runtime: ${refusal}`);
  }
}

/** @param {string} file */
function realpath(file) {
  try {
    return realpathSync(file);
  } catch {
    throw new BadInput(`--library ${file}: no such file`);
  }
}

/** Load the package's binding; return the file that holds ONNX Runtime, for the record. */
export async function loadBinding() {
  const { default: ort } = await import('onnxruntime-node');
  const files = mappedFiles(MARK);
  if (files.length !== 1) {
    throw new BadInput(
      `--library: the binding did not take it, ONNX Runtime is loaded from ${files.join(' and ')}`,
    );
  }
  return { ort, libraryFile: files[0] };
}
