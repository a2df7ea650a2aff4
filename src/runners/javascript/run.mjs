/** ONNX Runtime from Node.js, under the runner contract (docs/runner-contract.md). */

import { runProgram } from './driver/program.mjs';
import { NodeRunner } from './node_runner.mjs';

process.exit(await runProgram('javascript', new NodeRunner(), process.argv.slice(2)));
