/** The local web server of the page: its files, and what it asks for and tells. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { pipeline } from 'node:stream/promises';

import { Crash } from '../javascript/common/faults.mjs';

/** @import { IncomingMessage, ServerResponse } from 'node:http' */

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.mjs', 'text/javascript; charset=utf-8'],
  ['.wasm', 'application/wasm'],
]);
// Only so are pages isolated: shared memory for threads, and a clock of 5 us instead of 100.
const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/**
 * @typedef {object} Exchange what the page gets and gives
 * @property {() => Promise<object>} nextJob
 * @property {(name: string) => string | undefined} file the path of a job's file
 * @property {(what: string, body: Buffer) => void} told
 */

export class PageServer {
  #root;
  #exchange;
  // Other users of this machine may not take part.
  #key = randomBytes(16).toString('hex');
  #server = createServer((request, response) => void this.#serve(request, response));
  /** @type {(fault: Crash) => void} */
  #end = () => {};
  /** Paths of the WebAssembly files that were asked for. @type {Set<string>} */
  wasm = new Set();
  /** Raises Crash when the page is gone. @type {Promise<never>} */
  gone = new Promise((_, reject) => (this.#end = reject));

  /**
   * @param {string} root the folder whose files are served
   * @param {Exchange} exchange
   */
  constructor(root, exchange) {
    this.#root = root;
    this.#exchange = exchange;
    // The page keeps its connections: one that is closed while it asks would be a lost message.
    this.#server.keepAliveTimeout = 0;
    this.gone.catch(() => {});
  }

  /** Listen on the loopback interface; return the address under which all is. */
  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = /** @type {import('node:net').AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${address.port}/${this.#key}/`;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   */
  async #serve(request, response) {
    const [path] = (request.url ?? '').split('?');
    for (const [name, value] of Object.entries(ISOLATED)) response.setHeader(name, value);
    try {
      if (!path.startsWith(`/${this.#key}/`)) return void response.writeHead(404).end();
      await this.#answer(path.slice(this.#key.length + 2), request, response);
    } catch (thrown) {
      // The page hears no more of it, and says so; what broke is told here.
      process.stderr.write(`browser: ${request.method} ${path}: ${thrown}\n`);
      response.destroy();
    }
    return undefined;
  }

  /**
   * @param {string} path
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   */
  async #answer(path, request, response) {
    const [kind, ...rest] = path.split('/');
    const name = rest.join('/');
    if (kind === 'told') {
      this.#exchange.told(name, await bodyOf(request));
      response.end();
    } else if (kind === 'job') {
      response.end(JSON.stringify(await this.#exchange.nextJob()));
    } else if (kind === 'alive') {
      // Never answered: it ends when the page does, whatever ends that.
      response.on('close', () =>
        this.#end(new Crash('the page ended: it crashed, had no memory or lost the driver')),
      );
      response.writeHead(200).flushHeaders();
    } else {
      const file =
        kind === 'file' ? this.#exchange.file(name) : join(this.#root, normalize(`/${path}`));
      await this.#sendFile(file, response);
    }
  }

  /**
   * @param {string | undefined} file
   * @param {ServerResponse} response
   */
  async #sendFile(file, response) {
    const facts = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (file === undefined || !facts?.isFile()) return void response.writeHead(404).end();
    if (extname(file) === '.wasm') this.wasm.add(file);
    response.setHeader('Content-Type', TYPES.get(extname(file)) ?? 'application/octet-stream');
    response.setHeader('Content-Length', facts.size);
    await pipeline(createReadStream(file), response);
    return undefined;
  }
}

/** @param {IncomingMessage} request */
async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}
