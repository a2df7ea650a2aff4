package transect.runner;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Turns with other programs, each of which waits while another runs: docs/runner-contract.md. */
final class Turns {
  private static final int KEY = 32;

  private final String peer;
  private final Socket socket;
  private final DataInputStream counts;

  private Turns(String host, int port, String key) throws IOException {
    peer = host + ":" + port;
    try {
      socket = new Socket(host, port);
      socket.getOutputStream().write(key.getBytes(StandardCharsets.US_ASCII));
      counts = new DataInputStream(socket.getInputStream());
    } catch (IOException error) {
      throw new IOException("turns: " + peer + ": " + error.getMessage());
    }
  }

  /** Connect to who gives the turns; null where none are to be taken. */
  static Turns join() throws IOException {
    String given = System.getenv("TRANSECT_TURNS");
    if (given == null) {
      return null;
    }
    String[] parts = given.split(":");
    if (parts.length != 3 || parts[2].length() != KEY) {
      throw Fault.badInput("TRANSECT_TURNS: expected HOST:PORT:KEY", null);
    }
    return new Turns(parts[0], Integer.parseInt(parts[1]), parts[2]);
  }

  /** Say 'r', ready, or 'd', done, and wait; return the iterations of the next turn, 0: no more. */
  long next(char said) throws IOException {
    try {
      socket.getOutputStream().write(said);
      return Long.reverseBytes(counts.readLong());
    } catch (IOException error) {
      throw new IOException("turns: " + peer + " ended the connection");
    }
  }
}
