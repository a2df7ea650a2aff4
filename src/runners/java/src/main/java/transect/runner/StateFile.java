package transect.runner;

import com.google.gson.JsonElement;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** The state of a training: the numbers by name, from a file and into one. */
final class StateFile {
  private static final String STEP_GRAPH = "step_graph";

  private StateFile() {}

  /** Read a state. Throws BadInput for a file that is no state of this step. */
  static Map<String, ByteBuffer> read(Path path, Manifest manifest) {
    try (FileChannel channel = FileChannel.open(path)) {
      Safetensors file = new Safetensors(path, channel);
      JsonElement of = file.metadata.get(STEP_GRAPH);
      if (!Json.isText(of) || !of.getAsString().equals(manifest.stepGraph)) {
        throw new BadInput(path + ": is the state of the step " + Json.shown(of) + ", expected "
            + manifest.stepGraph);
      }
      Map<String, Safetensors.Place> places = new HashMap<>(file.places);
      Map<String, ByteBuffer> state = new LinkedHashMap<>();
      for (StateTensor tensor : manifest.state) {
        Safetensors.Place place = places.remove(tensor.name());
        check(path, tensor, place);
        state.put(tensor.name(), file.numbers(channel, place));
      }
      if (!places.isEmpty()) {
        throw new BadInput(path + ": has the tensors " + places.keySet()
            + ", which the step does not know");
      }
      String bad = notFinite(state, manifest);
      if (bad != null) {
        throw new BadInput(path + ": tensor '" + bad + "' holds a number that is not finite");
      }
      return state;
    } catch (IOException error) {
      throw new BadInput(path + ": the state cannot be read: " + error, error);
    }
  }

  private static void check(Path path, StateTensor wanted, Safetensors.Place found) {
    String description = Tensors.describe(wanted.dtype(), wanted.shape());
    if (found == null) {
      throw new BadInput(path + ": has no tensor '" + wanted.name() + "' of " + description);
    }
    String held = Tensors.describe(found.dtype(), found.shape());
    if (!held.equals(description)) {
      throw new BadInput(path + ": tensor '" + wanted.name() + "' is " + held + ", expected "
          + description);
    }
  }

  /** Return the name of a tensor that holds a number which is not finite, or null. */
  static String notFinite(Map<String, ByteBuffer> state, Manifest manifest) {
    for (StateTensor tensor : manifest.state) {
      if (!areFinite(state.get(tensor.name()), tensor.dtype())) {
        return tensor.name();
      }
    }
    return null;
  }

  private static boolean areFinite(ByteBuffer numbers, Dtype dtype) {
    // A number is none when all bits of its exponent are set.
    long exponent = switch (dtype) {
      case FLOAT64 -> 0x7ff0L << 48;
      case FLOAT32 -> 0x7f800000L;
      case BFLOAT16 -> 0x7f80L;
      case FLOAT16 -> 0x7c00L;
      default -> 0;
    };
    if (exponent == 0) {
      return true;
    }
    ByteBuffer bits = numbers.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    for (int place = 0; place < bits.limit(); place += dtype.size) {
      long value = switch (dtype.size) {
        case 8 -> bits.getLong(place);
        case 4 -> bits.getInt(place);
        default -> bits.getShort(place);
      };
      if ((value & exponent) == exponent) {
        return false;
      }
    }
    return true;
  }

  /**
   * Write a state: whole or not at all, whatever happens meanwhile.
   *
   * <p>Throws IOException with the system's words; the file of before then stays.
   */
  static void write(Path path, Manifest manifest, Map<String, ByteBuffer> state)
      throws IOException {
    Path folder = path.toAbsolutePath().getParent();
    Path temporary =
        folder.resolve("." + path.getFileName() + "." + ProcessHandle.current().pid());
    try {
      Files.createDirectories(folder);
      try (FileChannel channel =
          FileChannel.open(
              temporary,
              StandardOpenOption.CREATE,
              StandardOpenOption.TRUNCATE_EXISTING,
              StandardOpenOption.WRITE)) {
        writeWhole(channel, Safetensors.header(Map.of(STEP_GRAPH, manifest.stepGraph),
            manifest.state));
        for (StateTensor tensor : manifest.state) {
          writeWhole(channel, state.get(tensor.name()).duplicate().rewind());
        }
        channel.force(true);
      }
      Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
      // The name is the folder's: it too must be on the disk.
      try (FileChannel channel = FileChannel.open(folder)) {
        channel.force(true);
      }
    } catch (IOException error) {
      Files.deleteIfExists(temporary);
      throw new IOException(path + ": the checkpoint cannot be written: " + error, error);
    }
  }

  /** Remove temporary files that killed runs left; of runs that go on they stay. */
  static void removeLeft(Path path) throws IOException {
    Path folder = path.toAbsolutePath().getParent();
    if (!Files.isDirectory(folder)) {
      return;
    }
    String begin = "." + path.getFileName() + ".";
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        String name = file.getFileName().toString();
        String number = name.startsWith(begin) ? name.substring(begin.length()) : "";
        if (number.matches("[0-9]{1,18}")
            && ProcessHandle.of(Long.parseLong(number)).isEmpty()) {
          Files.deleteIfExists(file);
        }
      }
    }
  }

  private static void writeWhole(FileChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }
}
