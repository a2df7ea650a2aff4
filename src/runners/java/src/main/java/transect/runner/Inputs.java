package transect.runner;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The tensors that `header.json` names, cut into batches. */
final class Inputs {
  /** By name, a batch each: the last one may be partial. Without `batch` there is one, of all. */
  final List<Map<String, Value>> batches = new ArrayList<>();

  /** Those that are as long as the batch. */
  final List<Map<String, Value>> fullBatches;

  /** N, or null without a batch. */
  final Long rows;

  private final Long batch;

  /** Read `folder/header.json` and its files. Throws BadInput naming file and tensor. */
  Inputs(Path folder) {
    Path header = folder.resolve("header.json");
    JsonObject described = described(header);
    Map<String, TensorFile> files = files(header, described);
    batch = batch(header, described.get("batch"), files);
    rows = batch == null ? null : files.values().iterator().next().rows();
    try {
      read(files);
    } catch (IOException error) {
      throw new BadInput(header + ": a tensor cannot be read: " + error, error);
    }
    fullBatches = batch == null ? batches : batches.subList(0, Math.toIntExact(rows / batch));
  }

  /** Return the files that `folder/header.json` names. Throws BadInput for one that does not fit. */
  static Map<String, TensorFile> files(Path folder) {
    Path header = folder.resolve("header.json");
    return files(header, described(header));
  }

  private static JsonObject described(Path header) {
    JsonElement told = Json.read(header);
    if (told instanceof JsonObject object && object.get("tensors") instanceof JsonArray) {
      return object;
    }
    throw new BadInput(header + ": expected {\"tensors\": [...]}, got " + Json.shown(told));
  }

  private static Map<String, TensorFile> files(Path header, JsonObject described) {
    Map<String, TensorFile> files = new LinkedHashMap<>();
    for (JsonElement entry : described.getAsJsonArray("tensors")) {
      TensorFile file = TensorFile.of(header, entry);
      if (files.put(file.name(), file) != null) {
        throw new BadInput(header + ": tensor '" + file.name() + "' is there twice");
      }
    }
    files.values().forEach(TensorFile::checkSize);
    return files;
  }

  /** Return how many rows that batch has, or null without a batch. */
  Long rowsOf(int index) {
    return batch == null ? null : Math.min(batch, rows - index * batch);
  }

  private static Long batch(Path header, JsonElement given, Map<String, TensorFile> files) {
    if (given == null || given.isJsonNull()) {
      return null;
    }
    Set<Long> lengths = new LinkedHashSet<>();
    files.values().forEach(file -> lengths.add(file.rows()));
    boolean good =
        Json.isWhole(given)
            && lengths.size() == 1
            && given.getAsLong() >= 1
            && given.getAsLong() <= lengths.iterator().next();
    if (!good) {
      throw new BadInput(header + ": needs N >= batch >= 1 rows, the same N in every tensor; got "
          + "batch " + Json.shown(given) + " and " + lengths + " rows");
    }
    return given.getAsLong();
  }

  private void read(Map<String, TensorFile> files) throws IOException {
    long step = batch == null ? 1 : batch;
    long end = batch == null ? 1 : rows;
    List<TensorFile.Reader> readers = new ArrayList<>();
    try {
      for (TensorFile file : files.values()) {
        readers.add(file.open());
      }
      for (long start = 0; start < end; start += step) {
        Map<String, Value> feed = new LinkedHashMap<>();
        for (TensorFile.Reader reader : readers) {
          feed.put(
              reader.file().name(),
              batch == null ? reader.all() : reader.rows(Math.min(step, end - start)));
        }
        batches.add(feed);
      }
      for (TensorFile.Reader reader : readers) {
        reader.checkEnd();
      }
    } finally {
      for (TensorFile.Reader reader : readers) {
        reader.close();
      }
    }
  }
}
