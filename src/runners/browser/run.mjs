/** ONNX Runtime in headless Chromium, under the runner contract (docs/runner-contract.md). */

import { runProgram } from '../javascript/driver/program.mjs';
import { BrowserRunner } from './browser_runner.mjs';

const runner = new BrowserRunner();
const code = await runProgram('browser', runner, process.argv.slice(2));
await runner.close();
process.exit(code);
