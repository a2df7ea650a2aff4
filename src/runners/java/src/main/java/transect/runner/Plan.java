package transect.runner;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What the program is to do; the format is the contract's. All but its head was checked before. */
final class Plan {
  /** In the order of the contract's numbers. */
  enum Level { NONE, LATENCY, LOAD, CASES, TRAIN }

  /** In the order of the contract's numbers. */
  enum Role {
    NONE, LIBRARY, PROVIDER, OUT, OPTION, PROVIDER_OPTION, MODEL, OUTPUTS, INPUT, OUTPUT, PROFILE,
    ARRIVALS, GRAPH, STATE, DATA, HYPER, SEED, METRIC, ORDER, TAKES, GIVES, STEP_FOLDER
  }

  /** A row of the table; `at` and `size` are its data's bytes in the file that the text names. */
  record Entry(int number, Role role, int group, int dtype, long[] shape, int link, String name,
      String text, long at, long size) {}

  private static final String MAGIC = "TRANSECT";
  private static final int BYTE_ORDER_MARK = 0x01020304;
  private static final int VERSION = 1;
  private static final int HEAD_SIZE = 192;
  private static final int ENTRY_SIZE = 128;

  final Level level;

  /** Rows of a batch; 0: the tensors whole. */
  final int batch;

  final long rows;
  final int warmup;
  final int minRuns;
  final long maxNs;
  final int sessions;
  final long lastBeginNs;
  final long firstStep;
  final int steps;
  final int checkpointEvery;
  final int accumulate;
  final long seed;
  final long stateBytes;

  private final ByteBuffer file;
  private final List<Entry> all = new ArrayList<>();

  /** Throws Fault for a file that is no plan of this version. */
  Plan(Path path) {
    file = read(path);
    level = Level.values()[file.getInt(24)];
    batch = (int) file.getLong(32);
    rows = file.getLong(40);
    warmup = (int) file.getLong(48);
    minRuns = (int) file.getLong(56);
    maxNs = file.getLong(64);
    sessions = (int) file.getLong(72);
    lastBeginNs = file.getLong(80);
    firstStep = file.getLong(88);
    steps = (int) file.getLong(96);
    checkpointEvery = (int) file.getLong(104);
    accumulate = (int) file.getLong(112);
    seed = file.getLong(120);
    stateBytes = file.getLong(128);
    for (int number = 0; number < file.getInt(28); number++) {
      all.add(entry(number, HEAD_SIZE + number * ENTRY_SIZE));
    }
  }

  private static ByteBuffer read(Path path) {
    ByteBuffer found;
    try {
      found = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
    } catch (IOException error) {
      throw Fault.badInput(path + ": cannot be read: " + error, error);
    }
    long held = found.capacity();
    String wrong = null;
    if (held < 24 || !text(found, 0, MAGIC.length()).equals(MAGIC)) {
      wrong = "is no plan, expected a file that begins with " + MAGIC;
    } else if (found.getInt(8) != BYTE_ORDER_MARK) {
      wrong = String.format("is of another byte order: mark %#010x, expected %#010x",
          found.getInt(8), BYTE_ORDER_MARK);
    } else if (found.getInt(12) != VERSION) {
      wrong = "is of version " + Integer.toUnsignedString(found.getInt(12)) + ", expected "
          + VERSION;
    } else if (found.getLong(16) != held || held < HEAD_SIZE) {
      wrong = "holds " + held + " bytes, expected " + Long.toUnsignedString(found.getLong(16));
    }
    if (wrong != null) {
      throw Fault.badInput(path + ": " + wrong, null);
    }
    return found;
  }

  private Entry entry(int number, int at) {
    long[] shape = new long[file.getInt(at + 12)];
    for (int axis = 0; axis < shape.length; axis++) {
      shape[axis] = file.getLong(at + 72 + axis * Long.BYTES);
    }
    return new Entry(
        number,
        Role.values()[file.getInt(at)],
        file.getInt(at + 4),
        file.getInt(at + 8),
        shape,
        file.getInt(at + 16),
        text(file, file.getLong(at + 24), file.getLong(at + 32)),
        text(file, file.getLong(at + 40), file.getLong(at + 48)),
        file.getLong(at + 56),
        file.getLong(at + 64));
  }

  private static String text(ByteBuffer from, long at, long size) {
    return new String(from.array(), (int) at, (int) size, StandardCharsets.UTF_8);
  }

  /** Return the entry of that number. */
  Entry entry(int number) {
    return all.get(number);
  }

  /** Return the entries of a role, in their order. */
  List<Entry> entries(Role role) {
    return all.stream().filter(entry -> entry.role == role).toList();
  }

  /** Return the entries of a role and a group, in their order. */
  List<Entry> entries(Role role, int group) {
    return all.stream().filter(entry -> entry.role == role && entry.group == group).toList();
  }

  /** Return the text of the role's first entry, or null. */
  String text(Role role) {
    return entries(role).stream().map(Entry::text).findFirst().orElse(null);
  }

  /** Return the numbers of the role's one entry. */
  long[] longs(Role role) {
    Entry entry = entries(role).get(0);
    long[] numbers = new long[(int) (entry.size / Long.BYTES)];
    data(entry).asLongBuffer().get(numbers);
    return numbers;
  }

  /** Return the data of an entry, in memory as a whole: nothing is fetched while it is timed. */
  static ByteBuffer data(Entry entry) {
    if (entry.size == 0) {
      // A mapping of nothing has no address.
      return ByteBuffer.allocateDirect(0);
    }
    small(entry.name, entry.size);
    try (FileChannel channel = FileChannel.open(Path.of(entry.text))) {
      return channel.map(FileChannel.MapMode.READ_ONLY, entry.at, entry.size).load()
          .order(ByteOrder.LITTLE_ENDIAN);
    } catch (IOException | InvalidPathException error) {
      throw Fault.badInput(entry.text + ": cannot be read: " + error, error);
    }
  }

  /** Return a size. Throws Fault for what no buffer of Java holds. */
  static int small(String name, long size) {
    if (size > Integer.MAX_VALUE) {
      throw Fault.unsupported(
          "'" + name + "' has " + size + " bytes: Java's buffers hold less than 2 GiB");
    }
    return (int) size;
  }

  /** Return how many rows a batch has, the last of which may be partial; 0 without batches. */
  long rowsOf(int index) {
    return batch == 0 ? 0 : Math.min(batch, rows - (long) index * batch);
  }

  /** Return a case's inputs by name, a batch each, the partial one included; or one of all. */
  List<Map<String, Tensor>> batches(int group) {
    List<Map<String, Tensor>> batches = new ArrayList<>();
    for (int index = 0; index == 0 || rowsOf(index) > 0; index++) {
      batches.add(new LinkedHashMap<>());
    }
    for (Entry entry : entries(Role.INPUT, group)) {
      Tensor whole = Tensor.of(entry);
      for (int index = 0; index < batches.size(); index++) {
        batches.get(index).put(entry.name,
            batch == 0 ? whole : whole.rows(index * batch, (int) rowsOf(index)));
      }
    }
    return batches;
  }

  /** Return those batches that are full. */
  List<Map<String, Tensor>> full(List<Map<String, Tensor>> batches) {
    return batch == 0 ? batches : batches.subList(0, (int) (rows / batch));
  }
}
