package transect.runner;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A file in the format safetensors: a JSON header behind its length, then the numbers. */
final class Safetensors {
  private static final String METADATA = "__metadata__";
  private static final int HEAD = Long.BYTES;

  /** The format's own limit. */
  private static final long LONGEST_HEADER = 100_000_000;

  private static final Map<String, Dtype> DTYPES = new LinkedHashMap<>();

  static {
    for (Dtype dtype : Dtype.values()) {
      if (dtype != Dtype.STRING) {
        DTYPES.put(label(dtype), dtype);
      }
    }
  }

  /** One tensor: where it lies behind the header. */
  record Place(String name, Dtype dtype, long[] shape, long begin, long end) {}

  final JsonObject metadata;
  final Map<String, Place> places = new LinkedHashMap<>();

  private final Path path;
  private final long start;

  /** Read the header. Throws BadInput for a file that is not valid, before room is made. */
  Safetensors(Path path, FileChannel channel) throws IOException {
    this.path = path;
    long size = channel.size();
    long length = size < HEAD ? -1 : read(channel, 0, HEAD).getLong(0);
    if (length < 0 || length > Math.min(LONGEST_HEADER, size - HEAD)) {
      throw wrong("got a header of " + Long.toUnsignedString(length) + " bytes in a file of " + size);
    }
    start = HEAD + length;
    JsonObject header = parse(read(channel, HEAD, (int) length));
    JsonElement given = header.remove(METADATA);
    metadata = given instanceof JsonObject object ? object : new JsonObject();
    if (given != null && !(given instanceof JsonObject)) {
      throw wrong(METADATA + " is " + Json.shown(given));
    }
    header.entrySet().forEach(e -> places.put(e.getKey(), place(e.getKey(), e.getValue())));
    checkCover(size - start);
  }

  /** Read a tensor into memory of its own, outside of the heap. */
  ByteBuffer numbers(FileChannel channel, Place place) throws IOException {
    long size = place.end - place.begin;
    if (size > Tensors.LARGEST_BUFFER) {
      throw new BadInput(path + ": tensor '" + place.name + "' has " + size
          + " bytes: Java's buffers hold less than 2 GiB");
    }
    return read(channel, start + place.begin, (int) size);
  }

  private static ByteBuffer read(FileChannel channel, long begin, int size) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
    while (bytes.hasRemaining()) {
      if (channel.read(bytes, begin + bytes.position()) < 0) {
        throw new EOFException("it became shorter");
      }
    }
    return bytes.flip();
  }

  private JsonObject parse(ByteBuffer header) {
    try {
      return Json.parseUnique(StandardCharsets.UTF_8.newDecoder().decode(header).toString());
    } catch (CharacterCodingException | JsonParseException | StackOverflowError error) {
      throw wrong("its header is no JSON: " + error);
    }
  }

  private Place place(String name, JsonElement given) {
    JsonObject entry = given instanceof JsonObject object ? object : new JsonObject();
    JsonElement label = entry.get("dtype");
    Dtype dtype = Json.isText(label) ? DTYPES.get(label.getAsString()) : null;
    JsonElement offsets = entry.get("data_offsets");
    if (dtype == null
        || !Json.areSizes(entry.get("shape"))
        || !Json.areSizes(offsets)
        || offsets.getAsJsonArray().size() != 2) {
      throw wrong("tensor '" + name + "' is " + Json.shown(given));
    }
    long[] ends = Json.sizes(offsets);
    long[] shape = Json.sizes(entry.get("shape"));
    long bytes = Tensors.bytes(shape, dtype);
    if (bytes < 0 || ends[1] - ends[0] != bytes) {
      throw wrong("tensor '" + name + "' is " + Json.shown(given) + ", its shape takes "
          + (bytes < 0 ? "more than any file holds" : bytes + " bytes"));
    }
    return new Place(name, dtype, shape, ends[0], ends[1]);
  }

  /** Throws BadInput unless the tensors lie one behind the other, in any order, to the end. */
  private void checkCover(long length) {
    List<Place> ordered = new ArrayList<>(places.values());
    ordered.sort(Comparator.comparingLong(Place::begin).thenComparingLong(Place::end));
    long end = 0;
    for (Place place : ordered) {
      if (place.begin != end) {
        throw wrong("tensor '" + place.name + "' begins at " + place.begin + ", expected " + end
            + ": overlap or gap");
      }
      end = place.end;
    }
    if (end != length) {
      throw wrong("its tensors take " + end + " bytes, " + length + " are there");
    }
  }

  private BadInput wrong(String what) {
    return new BadInput(path + ": expected a safetensors file, " + what);
  }

  /** Return what stands before the numbers of these tensors, which lie one behind the other. */
  static ByteBuffer header(Map<String, String> metadata, Iterable<StateTensor> tensors) {
    StringBuilder text = new StringBuilder("{\"" + METADATA + "\":" + Json.text(metadata));
    long end = 0;
    for (StateTensor tensor : tensors) {
      long begin = end;
      end += tensor.bytes();
      Map<String, Object> entry = new LinkedHashMap<>();
      entry.put("dtype", label(tensor.dtype()));
      entry.put("shape", tensor.shape());
      entry.put("data_offsets", List.of(begin, end));
      text.append(',').append(Json.text(tensor.name())).append(':').append(Json.text(entry));
    }
    byte[] raw = text.append('}').toString().getBytes(StandardCharsets.UTF_8);
    int length = (raw.length + HEAD - 1) / HEAD * HEAD;
    ByteBuffer bytes = ByteBuffer.allocate(HEAD + length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(length).put(raw);
    while (bytes.hasRemaining()) {
      bytes.put((byte) ' ');
    }
    return bytes.flip();
  }

  /** Return the format's name of a type: `F32`. */
  private static String label(Dtype dtype) {
    return switch (dtype) {
      case FLOAT16, FLOAT32, FLOAT64 -> "F" + 8 * dtype.size;
      case BFLOAT16 -> "BF16";
      case INT8, INT16, INT32, INT64 -> "I" + 8 * dtype.size;
      case UINT8, UINT16, UINT32, UINT64 -> "U" + 8 * dtype.size;
      case BOOL -> "BOOL";
      case STRING -> throw new IllegalArgumentException("strings are no tensors of this format");
    };
  }
}
