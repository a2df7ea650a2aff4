package transect.runner;

import java.nio.ByteBuffer;

/** What goes into a run or comes out of it, in host memory of the program's own. */
sealed interface Value {
  /** Numbers, row-major, in native byte order, which is little-endian wherever this runs. */
  record Numbers(Dtype dtype, long[] shape, ByteBuffer bytes) implements Value {}

  /** Strings, row-major. */
  record Texts(long[] shape, String[] texts) implements Value {}

  /** No tensor; the words are for people. */
  record Opaque(String kind) implements Value {}
}
