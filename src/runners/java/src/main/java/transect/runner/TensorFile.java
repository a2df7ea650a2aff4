package transect.runner;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Arrays;

/** One entry of `header.json`: a file of raw numbers or strings. */
record TensorFile(String name, Dtype dtype, long[] shape, Path path) {
  /** What a length of a string takes. */
  private static final int HEAD = Integer.BYTES;

  /** Throws BadInput naming the entry, and Unsupported for one that is no tensor. */
  static TensorFile of(Path header, JsonElement given) {
    if (!(given instanceof JsonObject entry)) {
      throw new BadInput(header + ": expected a tensor, got " + Json.shown(given));
    }
    JsonElement name = entry.get("name");
    if (Json.isText(name) && Json.isText(entry.get("kind"))) {
      throw new Unsupported("input '" + name.getAsString() + "' is "
          + entry.get("kind").getAsString() + ": Java's API makes tensors only");
    }
    JsonElement dtype = entry.get("dtype");
    JsonElement file = entry.get("file");
    JsonElement sizes = entry.get("shape");
    if (!Json.isText(name) || !Json.isText(dtype) || !Json.isText(file)
        || !(sizes instanceof JsonArray)) {
      throw new BadInput(header + ": expected tensors with name, dtype, shape, file, got "
          + Json.shown(given));
    }
    Dtype known = Dtype.of(dtype.getAsString());
    if (known == null) {
      throw new BadInput(header + ": tensor '" + name.getAsString() + "' is "
          + Json.shown(dtype) + ", expected one of " + Dtype.labels());
    }
    if (!Json.areSizes(sizes)) {
      throw new BadInput(header + ": tensor '" + name.getAsString() + "' has shape "
          + Json.shown(sizes) + ", expected sizes >= 0");
    }
    try {
      Path path = header.resolveSibling(file.getAsString());
      return new TensorFile(name.getAsString(), known, Json.sizes(sizes), path);
    } catch (InvalidPathException error) {
      throw new BadInput(header + ": no path: " + error.getMessage(), error);
    }
  }

  /** Return the length of the first axis; a scalar has none: 0. */
  long rows() {
    return shape.length == 0 ? 0 : shape[0];
  }

  /** Throws BadInput unless the file holds what shape and dtype say, before any room is made. */
  void checkSize() {
    long held;
    try {
      held = Files.size(path);
    } catch (IOException error) {
      throw new BadInput(path + ": tensor '" + name + "' cannot be read: " + error, error);
    }
    // Of strings only the least is known: their lengths.
    long wanted = bytes(shape, dtype == Dtype.STRING ? HEAD : dtype.size);
    if (dtype == Dtype.STRING ? held < wanted : held != wanted) {
      throw new BadInput(path + ": holds " + held + " bytes, tensor '" + name + "' of shape "
          + Arrays.toString(shape) + " in " + dtype.label + " takes "
          + (dtype == Dtype.STRING ? "at least " : "") + wanted);
    }
  }

  private long bytes(long[] sizes, int each) {
    if (Arrays.stream(sizes).anyMatch(size -> size == 0)) {
      return 0;
    }
    try {
      return Arrays.stream(sizes).reduce(each, Math::multiplyExact);
    } catch (ArithmeticException error) {
      throw new BadInput(path + ": tensor '" + name + "' has shape " + Arrays.toString(sizes)
          + ", more than any file holds", error);
    }
  }

  Reader open() throws IOException {
    FileChannel channel = FileChannel.open(path);
    return new Reader(this, channel, new BufferedInputStream(Channels.newInputStream(channel)));
  }

  /** Reads a file from its beginning to its end. */
  record Reader(TensorFile file, FileChannel channel, InputStream stream) implements AutoCloseable {
    Value all() throws IOException {
      return read(file.shape);
    }

    /** Return the next rows. */
    Value rows(long count) throws IOException {
      long[] sizes = file.shape.clone();
      sizes[0] = count;
      return read(sizes);
    }

    private Value read(long[] sizes) throws IOException {
      if (file.dtype == Dtype.STRING) {
        String[] texts = new String[Math.toIntExact(file.bytes(sizes, 1))];
        for (int index = 0; index < texts.length; index++) {
          texts[index] = text();
        }
        return new Value.Texts(sizes, texts);
      }
      long size = file.bytes(sizes, file.dtype.size);
      if (size > Tensors.LARGEST_BUFFER) {
        throw new BadInput(file.path + ": " + size + " bytes at once of tensor '" + file.name
            + "': Java's buffers hold less than 2 GiB");
      }
      // Direct: ONNX Runtime's tensor is made over it without a copy.
      ByteBuffer bytes = ByteBuffer.allocateDirect((int) size).order(ByteOrder.nativeOrder());
      while (bytes.hasRemaining()) {
        if (channel.read(bytes) < 0) {
          throw new EOFException(file.path.toString());
        }
      }
      if (file.dtype == Dtype.BOOL) {
        checkFlags(bytes);
      }
      return new Value.Numbers(file.dtype, sizes, bytes.rewind());
    }

    /** Throws BadInput for a byte that is no bool: what a model makes of it is not defined. */
    private void checkFlags(ByteBuffer bytes) {
      for (int index = 0; index < bytes.limit(); index++) {
        int flag = Byte.toUnsignedInt(bytes.get(index));
        if (flag > 1) {
          throw new BadInput(file.path + ": tensor '" + file.name
              + "' is bool: expected bytes of 0 and 1, got " + flag);
        }
      }
    }

    private String text() throws IOException {
      byte[] head = stream.readNBytes(HEAD);
      long size = head.length < HEAD
          ? -1
          : Integer.toUnsignedLong(
              ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt());
      if (size < 0 || size > Files.size(file.path)) {
        throw noStrings();
      }
      byte[] raw = stream.readNBytes((int) size);
      if (raw.length < size) {
        throw noStrings();
      }
      try {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(raw)).toString();
      } catch (CharacterCodingException error) {
        throw new BadInput(file.path + ": a string of tensor '" + file.name + "' is no UTF-8",
            error);
      }
    }

    /** Throws BadInput when strings end before the file does. */
    void checkEnd() throws IOException {
      if (file.dtype == Dtype.STRING && stream.read() >= 0) {
        throw noStrings();
      }
    }

    private BadInput noStrings() {
      return new BadInput(file.path + ": expected " + file.bytes(file.shape, 1)
          + " strings of tensor '" + file.name + "', each after its length");
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }
}
