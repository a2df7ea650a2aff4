package transect.runner;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What the program leaves in the folder `out`: lines of JSON, times, and facts of the process. */
final class Result implements AutoCloseable {
  final Path folder;

  private final OutputStream lines;
  private final Map<String, Object> facts = new LinkedHashMap<>();

  Result(Path folder) throws IOException {
    this.folder = folder;
    lines = Files.newOutputStream(
        folder.resolve("result.jsonl"), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    facts.put("status", "ok");
  }

  /** Keep a fact of the last line. */
  void fact(String name, Object value) {
    facts.put(name, value);
  }

  /** Say a line: names and values by turns. */
  void say(Object... parts) throws IOException {
    Map<String, Object> line = new LinkedHashMap<>();
    for (int index = 0; index < parts.length; index += 2) {
      line.put((String) parts[index], parts[index + 1]);
    }
    say(line);
  }

  private void say(Map<String, Object> line) throws IOException {
    lines.write((json(line) + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /** Say the last line, which is that all went well. */
  void finish() throws IOException {
    say(facts);
  }

  @Override
  public void close() throws IOException {
    lines.close();
  }

  /** Keep what the system says of the process: after the measurement, before more is written. */
  void process() throws IOException {
    byte[] status = Files.readAllBytes(Path.of("/proc/self/status"));
    byte[] maps = Files.readAllBytes(Path.of("/proc/self/maps"));
    Files.write(folder.resolve("status.txt"), status);
    Files.write(folder.resolve("maps.txt"), maps);
  }

  /** Write numbers. */
  void numbers(String file, long[] numbers) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Long.BYTES);
    bytes.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().put(numbers);
    Files.write(folder.resolve(file), bytes.array());
  }

  private static String json(Object value) {
    if (value instanceof Map<?, ?> map) {
      return map.entrySet().stream()
          .map(entry -> json(entry.getKey()) + ": " + json(entry.getValue()))
          .collect(Collectors.joining(", ", "{", "}"));
    } else if (value instanceof List<?> list) {
      return list.stream().map(Result::json).collect(Collectors.joining(", ", "[", "]"));
    } else if (value instanceof String text) {
      return text.chars().mapToObj(Result::escaped).collect(Collectors.joining("", "\"", "\""));
    }
    return String.valueOf(value);
  }

  private static String escaped(int character) {
    if (character == '"' || character == '\\') {
      return "\\" + (char) character;
    }
    return character < ' ' ? String.format("\\u%04x", character) : "" + (char) character;
  }

  /** A case's outputs, a file each, into which batches are written as they come. */
  static final class Outputs {
    private final Path folder;
    private final List<Joined> outputs = new ArrayList<>();

    Outputs(Path folder) {
      this.folder = folder;
    }

    /** Append what a run gave; `rows`: how many the batch had, 0 without a batch. */
    void append(Session session, long rows) throws IOException {
      for (int index = 0; index < session.results.size(); index++) {
        if (index == outputs.size()) {
          Path file = folder.resolve("output-" + index + ".bin");
          outputs.add(new Joined(session.outputNames.get(index), file));
        }
        outputs.get(index).append(session.results.get(index), rows);
      }
    }

    /** Close the files; return the fact `outputs`. */
    List<Object> finish() throws IOException {
      List<Object> told = new ArrayList<>();
      for (Joined output : outputs) {
        told.add(output.finish());
      }
      return told;
    }
  }

  /** One output, its parts behind each other. */
  private static final class Joined {
    private final String name;
    private final Path file;
    private OutputStream stream;
    private int dtype;
    private long[] shape;

    Joined(String name, Path file) {
      this.name = name;
      this.file = file;
    }

    /** Throws Fault for an output that has other rows than the batch. */
    void append(Tensor value, long rows) throws IOException {
      if (value == null) {
        return;
      }
      grow(value.dtype(), value.shape(), rows);
      if (value.texts() == null) {
        ByteBuffer bytes = value.bytes();
        stream.write(bytes.array(), bytes.arrayOffset(), bytes.limit());
        return;
      }
      for (String text : value.texts()) {
        byte[] raw = text.getBytes(StandardCharsets.UTF_8);
        ByteBuffer head = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        stream.write(head.putInt(raw.length).array());
        stream.write(raw);
      }
    }

    private void grow(int found, long[] sizes, long rows) throws IOException {
      if (rows > 0 && (sizes.length == 0 || sizes[0] != rows)) {
        throw Fault.badInput("output '" + name + "' has shape " + Arrays.toString(sizes)
            + ", expected a first axis of the batch's " + rows + " rows", null);
      }
      if (stream == null) {
        stream = new BufferedOutputStream(Files.newOutputStream(file));
        dtype = found;
        shape = sizes.clone();
        return;
      }
      if (!Arrays.equals(sizes, 1, sizes.length, shape, 1, shape.length)) {
        throw Fault.badInput("output '" + name + "' has shape " + Arrays.toString(sizes) + " after "
            + Arrays.toString(shape) + ", expected parts that join along a first axis", null);
      }
      shape[0] += sizes[0];
    }

    /** Return type and shape, or null for what is no tensor. */
    private List<Object> finish() throws IOException {
      if (stream == null) {
        return null;
      }
      stream.close();
      return List.of(dtype, Arrays.stream(shape).boxed().toList());
    }
  }
}
