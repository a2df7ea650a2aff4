/**
 * keeper.mjs FOLDER PROGRAM ARGUMENT…: runs a program until it ends or the standard input does.
 *
 * Then nothing of it stays, neither processes nor the folder. The driver holds the other end of the
 * standard input, which closes in whatever way the driver ends.
 */

import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';

const [folder, program, ...words] = process.argv.slice(2);
// Its group has its pid: the processes that it starts are in it.
const child = spawn(program, words, { detached: true, stdio: ['ignore', 'ignore', 'inherit'] });

function kill() {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

/** @param {Error} [error] */
function end(error) {
  kill();
  // What was killed may still write for a moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  if (error) process.stderr.write(`${error.message}\n`);
  process.exit();
}

child.on('exit', () => end());
child.on('error', end);
process.stdin.on('end', kill).on('error', kill).resume();
