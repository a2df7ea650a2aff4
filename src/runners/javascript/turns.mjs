/** Turns with other programs, each of which waits while another runs: docs/runner-contract.md. */

import { once } from 'node:events';
import { connect } from 'node:net';

import { Fault, wordsOf } from './faults.mjs';

/** @import { Socket } from 'node:net' */

export class Turns {
  #peer;
  #socket;
  #chunks;
  #held = Buffer.alloc(0);

  /**
   * @param {string} peer
   * @param {Socket} socket
   */
  constructor(peer, socket) {
    this.#peer = peer;
    this.#socket = socket;
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Connect to who gives the turns; undefined where none are to be taken. */
  static async join() {
    const given = process.env.TRANSECT_TURNS;
    if (given === undefined) return undefined;
    const [host, port, key] = given.split(':');
    if (key?.length !== 32) throw new Fault('bad-input', 'TRANSECT_TURNS: expected HOST:PORT:KEY');
    const socket = connect(Number(port), host);
    try {
      await once(socket, 'connect');
    } catch (thrown) {
      throw new Fault('crash', `turns: ${host}:${port}: ${wordsOf(thrown)}`);
    }
    socket.write(key);
    return new Turns(`${host}:${port}`, socket);
  }

  /**
   * Say 'r', ready, or 'd', done, and wait; return the iterations of the next turn, 0: no more.
   * @param {'r' | 'd'} said
   */
  async next(said) {
    this.#socket.write(said);
    while (this.#held.length < 8) {
      const chunk = await this.#chunks.next().catch(() => ({ done: true, value: undefined }));
      if (chunk.done) throw new Fault('crash', `turns: ${this.#peer} ended the connection`);
      this.#held = Buffer.concat([this.#held, chunk.value]);
    }
    const count = Number(this.#held.readBigInt64LE());
    this.#held = this.#held.subarray(8);
    return count;
  }
}
