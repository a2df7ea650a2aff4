package transect.runner;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** The manifest of a portable training step: docs/portable-training-step.md. */
final class Manifest {
  private static final String FORMAT = "transect-portable-step";
  private static final int VERSION = 1;

  /** A data tensor; -1 is a size that may vary, and the first one is the batch. */
  record DataTensor(String name, Dtype dtype, long[] shape) {}

  /** One of the ONNX files, and the names that it takes and gives. */
  record Graph(Path file, List<String> inputs, List<String> outputs) {}

  final String stepGraph;
  final Path stateFile;
  final List<DataTensor> data = new ArrayList<>();

  /** Defaults by name. */
  final Map<String, Double> hyper = new LinkedHashMap<>();

  /** The name of the seed, or null. */
  final String seed;

  final List<StateTensor> state = new ArrayList<>();

  /** The name of the tensor that counts the updates done. */
  final String counter;

  /** By name; the first is the loss. */
  final Map<String, Dtype> metrics = new LinkedHashMap<>();

  final Map<String, Graph> graphs = new LinkedHashMap<>();

  private final Path path;

  /** Read `folder/manifest.json`. Throws BadInput naming the file and what cannot be used. */
  Manifest(Path folder) {
    path = folder.resolve("manifest.json");
    JsonObject told = object(Json.read(path), "the file");
    JsonElement version = told.get("version");
    boolean known = Json.isText(told.get("format"))
        && told.get("format").getAsString().equals(FORMAT)
        && Json.isWhole(version)
        && version.getAsLong() == VERSION;
    if (!known) {
      throw wrong("expected format \"" + FORMAT + "\", version " + VERSION + "; got "
          + Json.shown(told.get("format")) + ", " + Json.shown(version));
    }
    stepGraph = text(told, "step_graph");
    stateFile = folder.resolve(text(told, "state_file"));
    each(told, "data", e -> data.add(new DataTensor(text(e, "name"), dtype(e), batchShape(e))));
    each(told, "hyper", e -> hyper.put(text(e, "name"), number(e, "default")));
    JsonElement drawn = told.get("seed");
    seed = drawn == null || drawn.isJsonNull() ? null : text(object(drawn, "seed"), "name");
    each(told, "state", e -> state.add(stateTensor(e)));
    each(told, "metrics", e -> metrics.put(text(e, "name"), metric(e)));
    JsonObject files = object(told.get("graphs"), "graphs");
    for (Map.Entry<String, JsonElement> entry : files.entrySet()) {
      JsonObject graph = object(entry.getValue(), "graph '" + entry.getKey() + "'");
      Path file = folder.resolve(text(graph, "file"));
      graphs.put(entry.getKey(), new Graph(file, names(graph, "inputs"), names(graph, "outputs")));
    }
    counter = counter();
    checkGraph("step");
    if (graphs.containsKey("accumulate")) {
      checkGraph("accumulate");
    }
  }

  private String counter() {
    List<StateTensor> found = state.stream().filter(t -> t.role().equals("counter")).toList();
    boolean good =
        found.size() == 1
            && found.get(0).dtype() == Dtype.INT64
            && found.get(0).shape().length == 0;
    if (!good) {
      throw wrong("expected one counter in \"state\", an int64 scalar; got " + found);
    }
    return found.get(0).name();
  }

  /** Throws BadInput unless what a graph takes and gives is named elsewhere, metrics included. */
  private void checkGraph(String name) {
    Graph graph = graphs.get(name);
    if (graph == null) {
      throw wrong("\"graphs\" has no " + name);
    }
    Set<String> given = new HashSet<>(hyper.keySet());
    Set<String> taken = new HashSet<>(metrics.keySet());
    data.forEach(tensor -> given.add(tensor.name()));
    state.forEach(tensor -> given.add(tensor.name()));
    state.forEach(tensor -> taken.add(tensor.next()));
    given.add(seed);
    for (String input : graph.inputs()) {
      if (!given.contains(input)) {
        throw wrong(graph.file() + " takes '" + input + "', which nothing gives");
      }
    }
    for (String output : graph.outputs()) {
      if (!taken.contains(output)) {
        throw wrong(graph.file() + " gives '" + output + "', which nothing takes");
      }
    }
    if (metrics.isEmpty() || !graph.outputs().containsAll(metrics.keySet())) {
      throw wrong(graph.file() + " gives " + graph.outputs() + ", expected the metrics "
          + metrics.keySet() + ", the loss first");
    }
  }

  private StateTensor stateTensor(JsonObject entry) {
    JsonElement next = entry.get("next");
    if (!Json.areSizes(entry.get("shape"))) {
      throw wrong("\"state\" has " + Json.shown(entry));
    }
    String output = next == null || next.isJsonNull() ? null : text(entry, "next");
    long[] shape = Json.sizes(entry.get("shape"));
    return new StateTensor(text(entry, "name"), text(entry, "role"), dtype(entry), shape, output);
  }

  private Dtype metric(JsonObject entry) {
    Dtype dtype = dtype(entry);
    if (dtype != Dtype.FLOAT32 && dtype != Dtype.FLOAT64) {
      throw wrong("expected metrics in float32 or float64, got " + Json.shown(entry));
    }
    return dtype;
  }

  private long[] batchShape(JsonObject entry) {
    if (!(entry.get("shape") instanceof JsonArray sizes) || sizes.isEmpty()) {
      throw wrong("\"data\" has " + Json.shown(entry));
    }
    for (JsonElement size : sizes) {
      if (!Json.isText(size) && !Json.isWhole(size)) {
        throw wrong("\"data\" has " + Json.shown(entry));
      }
    }
    return sizes.asList().stream().mapToLong(s -> Json.isText(s) ? -1 : s.getAsLong()).toArray();
  }

  private Dtype dtype(JsonObject entry) {
    Dtype dtype = Dtype.of(text(entry, "dtype"));
    if (dtype == null || dtype == Dtype.STRING) {
      throw wrong(Json.shown(entry) + " has a type that is none of " + Dtype.labels());
    }
    return dtype;
  }

  private double number(JsonObject entry, String key) {
    if (!Json.isFinite(entry.get(key))) {
      throw wrong("\"" + key + "\" of " + Json.shown(entry) + " is no number");
    }
    return entry.get(key).getAsDouble();
  }

  private String text(JsonObject entry, String key) {
    if (!Json.isText(entry.get(key))) {
      throw wrong("\"" + key + "\" of " + Json.shown(entry) + " is no text");
    }
    return entry.get(key).getAsString();
  }

  private List<String> names(JsonObject graph, String key) {
    if (!(graph.get(key) instanceof JsonArray list)
        || !list.asList().stream().allMatch(Json::isText)) {
      throw wrong("\"" + key + "\" of " + Json.shown(graph) + " is no list of names");
    }
    return list.asList().stream().map(JsonElement::getAsString).toList();
  }

  private void each(JsonObject told, String key, Consumer<JsonObject> take) {
    if (!(told.get(key) instanceof JsonArray list)) {
      throw wrong("\"" + key + "\" is " + Json.shown(told.get(key)) + ", expected a list");
    }
    list.forEach(entry -> take.accept(object(entry, key)));
  }

  private JsonObject object(JsonElement value, String what) {
    if (value instanceof JsonObject object) {
      return object;
    }
    throw wrong(what + " is " + Json.shown(value) + ", expected an object");
  }

  private BadInput wrong(String what) {
    return new BadInput(path + ": " + what);
  }
}
