/** The local web server of the page: its files, what it asks for, and what it leaves. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { pipeline } from 'node:stream/promises';

import { Fault, wordsOf } from '../javascript/faults.mjs';
import { ROLE } from '../javascript/plan.mjs';

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Result } from '../javascript/result.mjs' */

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

export class PageServer {
  #root;
  #result;
  // Other users of this machine may not take part.
  #key = randomBytes(16).toString('hex');
  #server = createServer((request, response) => void this.#serve(request, response));
  /** @type {(facts: object) => void} */
  #end = () => {};
  /**
   * End with a fault.
   * @type {(fault: unknown) => void}
   */
  fail = () => {};
  /**
   * What the page says at its end. Raises its fault, or one when it is gone.
   * @type {Promise<object>}
   */
  ended = new Promise((resolve, reject) => ([this.#end, this.fail] = [resolve, reject]));
  /** Is called right after the measurement. */
  measured = () => {};
  /** Whether the page has asked for work. */
  isOpen = false;
  /**
   * Paths of the WebAssembly files that were asked for.
   * @type {Set<string>}
   */
  wasm = new Set();

  /**
   * @param {string} root the folder whose files are served
   * @param {Result} result
   */
  constructor(root, result) {
    this.#root = root;
    this.#result = result;
    // The page keeps its connections: one that is closed while it asks would be a lost message.
    this.#server.keepAliveTimeout = 0;
    this.ended.catch(() => {});
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
    const path = decodeURIComponent((request.url ?? '').split('?')[0]);
    for (const [name, value] of Object.entries(ISOLATED)) response.setHeader(name, value);
    try {
      if (!path.startsWith(`/${this.#key}/`)) return void response.writeHead(404).end();
      const [kind, number = '', ...rest] = path.slice(this.#key.length + 2).split('/');
      if (request.method === 'POST') {
        const body = await bodyOf(request);
        response.end(this.#told(kind, Number(number), rest.join('/'), body));
      } else if (kind === 'alive') {
        // Never answered: it ends when the page does, whatever ends that.
        const words = 'the page ended: it crashed, had no memory or lost the driver';
        response.on('close', () => this.fail(new Fault('crash', words)));
        response.writeHead(200).flushHeaders();
      } else {
        await this.#give(kind, Number(number), rest.join('/'), path, response);
      }
    } catch (thrown) {
      // What cannot be written ends it. What cannot be given the page says itself, or has given up.
      if (request.method === 'POST') this.fail(thrown);
      else process.stderr.write(`browser: ${request.method} ${path}: ${wordsOf(thrown)}\n`);
      response.destroy();
    }
    return undefined;
  }

  /**
   * Take what the page tells; return what it asks for.
   * @param {string} what
   * @param {number} number of an entry
   * @param {string} name of a file
   * @param {Buffer<ArrayBuffer>} body
   */
  #told(what, number, name, body) {
    const entry = this.#result.plan.entries[number];
    if (what === 'w' || what === 'a') this.#result.write(entry, name, body, what);
    else if (what === 'save') this.#result.save(name, [body]);
    else if (what === 'say') this.#result.say(JSON.parse(body.toString()));
    else if (what === 'clock') return String(this.#result.monotonicNs());
    else if (what === 'log') process.stderr.write(body);
    else if (what === 'profile') return this.#profile(body);
    else if (what === 'end') this.#end(JSON.parse(body.toString()));
    else if (what === 'fault') {
      const { kind, message } = JSON.parse(body.toString());
      this.fail(new Fault(kind, message));
    } else if (what === 'snapshot') {
      this.#result.snapshot();
      this.measured();
    }
    return '';
  }

  /**
   * Write what ONNX Runtime printed as its profile; return the file.
   * @param {Buffer} text
   */
  #profile(text) {
    const time = new Date().toISOString().replace('T', '_').replace(/[:.]/g, '-').replace('Z', '');
    const file = `${this.#result.plan.text(ROLE.profile)}_${time}.json`;
    writeFileSync(file, text);
    return file;
  }

  /**
   * @param {string} kind
   * @param {number} number of an entry
   * @param {string} name of a file beside the entry's
   * @param {string} path of a file of the page
   * @param {ServerResponse} response
   */
  async #give(kind, number, name, path, response) {
    const entry = this.#result.plan.entries[number];
    this.isOpen ||= kind === 'plan';
    if (kind === 'plan') await this.#send(process.argv[2], response);
    else if (kind === 'data') response.end(this.#result.read(entry));
    else if (kind === 'file') await this.#send(entry.text, response);
    else if (kind === 'beside') await this.#send(join(dirname(entry.text), name), response);
    else if (kind === 'names') response.end(JSON.stringify(externalFiles(entry.text)));
    else await this.#send(join(this.#root, normalize(path.slice(this.#key.length + 1))), response);
  }

  /**
   * @param {string} file
   * @param {ServerResponse} response
   */
  async #send(file, response) {
    const facts = statSync(file, { throwIfNoEntry: false });
    if (!facts?.isFile()) return void response.writeHead(404).end();
    if (extname(file) === '.wasm') this.wasm.add(file);
    response.setHeader('Content-Type', TYPES.get(extname(file)) ?? 'application/octet-stream');
    response.setHeader('Content-Length', facts.size);
    await pipeline(createReadStream(file), response);
    return undefined;
  }
}

/**
 * Return the names, relative to a model's folder, of the files that the model names: they hold its
 * weights, and a page has to be told of each. A name that is in it by chance costs a download.
 * @param {string} model
 */
function externalFiles(model) {
  const bytes = readFileSync(model);
  // The key under which ONNX keeps the name (TensorProto.external_data).
  if (!bytes.includes('location')) return [];
  const folder = dirname(model);
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => bytes.includes(name) && statSync(join(folder, name)).isFile());
}

/** @param {IncomingMessage} request */
async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}
