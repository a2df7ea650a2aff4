/** ONNX Runtime in headless Chromium, under the runner contract (docs/runner-contract.md). */

import { fileURLToPath } from 'node:url';

import { Fault } from '../javascript/faults.mjs';
import { ROLE } from '../javascript/plan.mjs';
import { runProgram } from '../javascript/result.mjs';
import { Chromium, findChromium } from './chromium.mjs';
import { PageServer } from './server.mjs';

/** @import { Plan } from '../javascript/plan.mjs' */
/** @import { Result } from '../javascript/result.mjs' */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PAGE = 'browser/page/index.html';
// A page that has not asked for its work by then never will.
const OPENING_MS = 120_000;

/**
 * Have a page do what the plan says; return what it says at its end.
 * @param {Result} result
 */
async function work(result) {
  const program = findChromium();
  const server = new PageServer(ROOT, result);
  const chromium = new Chromium(program, (await server.listen()) + PAGE, gpuOf(result.plan));
  let memory = 0;
  server.measured = () => (memory = chromium.peakMemory());
  const late = setTimeout(() => {
    const seconds = OPENING_MS / 1000;
    const words = `Chromium did not open the page within ${seconds} s`;
    if (!server.isOpen) server.fail(new Fault('crash', words));
  }, OPENING_MS);
  try {
    const facts = await Promise.race([server.ended, chromium.ended]);
    return {
      ...facts,
      peak_memory_bytes: memory,
      peak_memory_of:
        "the sum of VmHWM over Chromium's processes: pages that they share count in each",
      library_file: [...server.wasm].join(', '),
    };
  } finally {
    clearTimeout(late);
    await chromium.close();
    server.close();
  }
}

/** @param {Plan} plan */
function gpuOf(plan) {
  if (plan.text(ROLE.provider) === 'cpu') return 'none';
  const options = plan.all(ROLE.providerOption);
  const isSoftware = options.some(
    ({ name, text }) => name === 'forceFallbackAdapter' && text === '1',
  );
  return isSoftware ? 'software' : 'any';
}

process.exit(await runProgram('browser', work));
