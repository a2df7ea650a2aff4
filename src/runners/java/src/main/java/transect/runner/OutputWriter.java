package transect.runner;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Writes outputs as they come, a file each, and at the end the header. */
final class OutputWriter {
  private final Path folder;
  private final List<Joined> outputs = new ArrayList<>();

  OutputWriter(Path folder) throws IOException {
    this.folder = folder;
    Files.createDirectories(folder);
  }

  /**
   * Append what one run gave. `rows`: how many the batch had, along which the parts are joined, or
   * null without a batch. Throws BadInput for an output that has other rows.
   */
  void append(List<String> names, List<Value> values, Long rows) throws IOException {
    for (int index = 0; index < values.size(); index++) {
      if (index == outputs.size()) {
        outputs.add(new Joined(names.get(index), "output-" + index + ".bin"));
      }
      outputs.get(index).append(values.get(index), rows);
    }
  }

  /** Write `header.json`; return its path. */
  Path finish() throws IOException {
    List<Map<String, Object>> entries = new ArrayList<>();
    for (Joined output : outputs) {
      entries.add(output.finish());
    }
    Path header = folder.resolve("header.json");
    Files.writeString(header, Json.text(Map.of("tensors", entries)) + "\n");
    return header;
  }

  /** One output, its parts behind each other. */
  private final class Joined {
    private final String name;
    private final String file;
    private OutputStream stream;
    private Dtype dtype;
    private long[] shape;
    private String kind;

    Joined(String name, String file) {
      this.name = name;
      this.file = file;
    }

    void append(Value value, Long rows) throws IOException {
      if (value instanceof Value.Opaque ? stream != null : kind != null) {
        throw new BadInput("output '" + name + "' is a tensor for some batches only");
      }
      if (value instanceof Value.Opaque opaque) {
        kind = opaque.kind();
      } else if (value instanceof Value.Numbers numbers) {
        grow(numbers.dtype(), numbers.shape(), rows);
        ByteBuffer bytes = numbers.bytes();
        stream.write(bytes.array(), bytes.arrayOffset(), bytes.limit());
      } else if (value instanceof Value.Texts texts) {
        grow(Dtype.STRING, texts.shape(), rows);
        for (String text : texts.texts()) {
          byte[] raw = text.getBytes(StandardCharsets.UTF_8);
          ByteBuffer head = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
          stream.write(head.putInt(raw.length).array());
          stream.write(raw);
        }
      }
    }

    private void grow(Dtype found, long[] sizes, Long rows) throws IOException {
      if (rows != null && (sizes.length == 0 || sizes[0] != rows)) {
        throw new BadInput("output '" + name + "' has shape " + Arrays.toString(sizes)
            + ", expected a first axis of the batch's " + rows + " rows");
      }
      if (stream == null) {
        stream = new BufferedOutputStream(Files.newOutputStream(folder.resolve(file)));
        dtype = found;
        shape = sizes.clone();
        return;
      }
      boolean joins =
          dtype == found
              && sizes.length == shape.length
              && Arrays.equals(sizes, 1, sizes.length, shape, 1, shape.length);
      if (!joins) {
        throw new BadInput("output '" + name + "' is " + found.label + Arrays.toString(sizes)
            + " after " + dtype.label + Arrays.toString(shape)
            + " of the batches before: expected parts that join along a first axis");
      }
      shape[0] += sizes[0];
    }

    Map<String, Object> finish() throws IOException {
      if (stream != null) {
        stream.close();
      }
      Map<String, Object> entry = new LinkedHashMap<>();
      entry.put("name", name);
      if (kind != null) {
        Files.deleteIfExists(folder.resolve(file));
        entry.put("kind", kind);
        return entry;
      }
      entry.put("dtype", dtype.label);
      entry.put("shape", shape);
      entry.put("file", file);
      return entry;
    }
  }
}
