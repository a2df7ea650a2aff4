package transect.runner;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What mode `train` is given, read and checked. */
final class Training {
  final Manifest manifest;
  final int batch;
  final int accumulate;
  final int until;
  final int checkpointEvery;
  final long seed;
  final Path checkpoint;

  /** All rows, by name, in the manifest's order. */
  final Map<String, Value.Numbers> data = new LinkedHashMap<>();

  /** The rows of the batches, one batch behind the other. */
  final long[] order;

  /** By name, in the manifest's order. */
  final Map<String, ByteBuffer> state;

  /** The state's own number of updates. */
  final int first;

  /** By name: one number for all steps, or one for each. */
  private final Map<String, double[]> hyper = new LinkedHashMap<>();

  /** Throws BadInput naming what cannot be used. */
  Training(Arguments given) {
    Path folder = given.path("step");
    batch = given.batch();
    accumulate = given.accumulate();
    until = given.until();
    checkpointEvery = given.checkpointEvery();
    seed = given.seed();
    checkpoint = given.path("checkpoint");
    manifest = new Manifest(folder);
    checkGraphs(folder);
    manifest.hyper.forEach((name, value) -> hyper.put(name, new double[] {value}));
    if (given.path("schedule") != null) {
      readSchedule(given.path("schedule"));
    }
    readData(given.path("inputs"));
    long rows = data.isEmpty() ? 0 : data.values().iterator().next().shape()[0];
    order = readOrder(given.path("order"), rows);
    Path begun = given.path("state") == null ? manifest.stateFile : given.path("state");
    Path source = Files.exists(checkpoint) ? checkpoint : begun;
    state = StateFile.read(source, manifest);
    long step = state.get(manifest.counter).getLong(0);
    if (step < 0 || step > until) {
      throw new BadInput(source + ": is of step " + step + ", expected one from 0 to --until "
          + until);
    }
    first = (int) step;
  }

  /** Return a hyper-parameter of a step. */
  double hyper(String name, int step) {
    double[] values = hyper.get(name);
    return values.length == 1 ? values[0] : values[step];
  }

  private void checkGraphs(Path folder) {
    if (accumulate > 1 && !manifest.graphs.containsKey("accumulate")) {
      throw new BadInput("--accumulate " + accumulate + ": " + folder
          + " has no graph 'accumulate', expected 1");
    }
    for (String name : accumulate > 1 ? List.of("step", "accumulate") : List.of("step")) {
      Path file = manifest.graphs.get(name).file();
      if (!Files.isRegularFile(file)) {
        throw new BadInput(file + ": no such graph");
      }
    }
    checkSum(manifest.graphs.get("step").file());
  }

  /** State files name the step by this sum: one bit altered would train another model in silence. */
  private void checkSum(Path file) {
    try {
      byte[] sum = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
      String found = HexFormat.of().formatHex(sum);
      if (!found.equals(manifest.stepGraph)) {
        throw new BadInput(file + " has the sha256 " + found + ", expected " + manifest.stepGraph);
      }
    } catch (IOException error) {
      throw new BadInput(file + ": cannot be read: " + error);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException("each Java has SHA-256", error);
    }
  }

  private void readSchedule(Path path) {
    if (!(Json.read(path) instanceof JsonObject given)) {
      throw new BadInput(path + ": expected a JSON object");
    }
    for (Map.Entry<String, JsonElement> entry : given.entrySet()) {
      String name = entry.getKey();
      if (!hyper.containsKey(name)) {
        throw new BadInput(path + ": hyper-parameter '" + name + "' is unknown: expected one of "
            + hyper.keySet());
      }
      boolean each = entry.getValue() instanceof JsonArray;
      JsonArray list = each ? entry.getValue().getAsJsonArray() : new JsonArray();
      if (!each) {
        list.add(entry.getValue());
      }
      if (!list.asList().stream().allMatch(Json::isFinite)) {
        throw new BadInput(path + ": '" + name + "' is " + Json.shown(entry.getValue())
            + ", expected a number or a list of numbers");
      }
      if (each && list.size() < until) {
        throw new BadInput(path + ": '" + name + "' has " + list.size() + " numbers, --until "
            + until + " takes one for each step");
      }
      hyper.put(name, list.asList().stream().mapToDouble(JsonElement::getAsDouble).toArray());
    }
  }

  private void readData(Path folder) {
    Path header = folder.resolve("header.json");
    Map<String, TensorFile> files = Inputs.files(folder);
    Map<String, TensorFile> wanted = new LinkedHashMap<>();
    manifest.data.forEach(tensor -> wanted.put(tensor.name(), files.get(tensor.name())));
    if (!wanted.keySet().equals(files.keySet())) {
      throw new BadInput(header + ": expected the tensors " + wanted.keySet() + ", got "
          + files.keySet());
    }
    for (Manifest.DataTensor tensor : manifest.data) {
      TensorFile file = wanted.get(tensor.name());
      checkData(header, tensor, file, wanted.values().iterator().next().rows());
      try (TensorFile.Reader reader = file.open()) {
        data.put(tensor.name(), (Value.Numbers) reader.all());
      } catch (IOException error) {
        throw new BadInput(file.path() + ": cannot be read: " + error, error);
      }
    }
  }

  private void checkData(Path header, Manifest.DataTensor wanted, TensorFile file, long rows) {
    long[] shape = file.shape().clone();
    boolean fits = shape.length > 0 && file.dtype() == wanted.dtype() && shape[0] == rows;
    if (fits) {
      // What a run gets is a batch.
      shape[0] = batch;
    }
    if (!fits || !Tensors.fit(wanted.shape(), shape)) {
      throw new BadInput(header + ": tensor '" + file.name() + "' is "
          + Tensors.describe(file.dtype(), file.shape()) + ", a step of " + batch
          + " rows takes " + Tensors.describe(wanted.dtype(), wanted.shape()) + " from " + rows
          + " rows");
    }
  }

  private long[] readOrder(Path path, long rows) {
    try (FileChannel channel = FileChannel.open(path)) {
      long held = channel.size() / Long.BYTES;
      // No product of three: it might be more than 64 bits.
      boolean enough = until == 0 || held / until >= (long) accumulate * batch;
      if (channel.size() % Long.BYTES != 0 || !enough) {
        throw new BadInput(path + ": expected int64 rows, at least " + until + " steps x "
            + accumulate + " x " + batch + "; got " + channel.size() + " bytes");
      }
      long bytes = (long) until * accumulate * batch * Long.BYTES;
      if (bytes > Tensors.LARGEST_BUFFER) {
        throw new BadInput(path + ": " + bytes + " bytes of rows: Java's buffers hold less than "
            + "2 GiB");
      }
      LongBuffer numbers = channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes)
          .order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      long[] found = new long[numbers.capacity()];
      numbers.get(found);
      for (int index = 0; index < found.length; index++) {
        if (found[index] < 0 || found[index] >= rows) {
          throw new BadInput(path + ": row " + found[index] + " at " + index + ", the data have "
              + rows + " rows");
        }
      }
      return found;
    } catch (IOException error) {
      throw new BadInput(path + ": cannot be read: " + error, error);
    }
  }
}
