package transect.runner;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.OrtSession.SessionOptions.ExecutionMode;
import ai.onnxruntime.OrtSession.SessionOptions.OptLevel;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The session options of `--options`: those that are set, checked. */
final class Options {
  private static final Map<String, ExecutionMode> MODES =
      Map.of("sequential", ExecutionMode.SEQUENTIAL, "parallel", ExecutionMode.PARALLEL);
  private static final Map<String, OptLevel> LEVELS =
      Map.of(
          "disabled", OptLevel.NO_OPT,
          "basic", OptLevel.BASIC_OPT,
          "extended", OptLevel.EXTENDED_OPT,
          "all", OptLevel.ALL_OPT);
  private static final String KEYS =
      "intra_op_num_threads, inter_op_num_threads, execution_mode, graph_optimization_level, "
          + "enable_cpu_mem_arena, enable_mem_pattern, provider_options, or a name with a dot";

  private final Map<String, JsonElement> given = new LinkedHashMap<>();

  /** `path`: the file, or null for no option at all. Throws BadInput naming key and value. */
  Options(Path path) {
    if (path == null) {
      return;
    }
    if (!(Json.read(path) instanceof JsonObject object)) {
      throw new BadInput(path + ": expected a JSON object");
    }
    for (Map.Entry<String, JsonElement> entry : object.entrySet()) {
      if (entry.getValue().isJsonNull()) {
        continue;
      }
      String wanted = wanted(entry.getKey(), entry.getValue());
      if (wanted != null) {
        throw new BadInput(path + ": option '" + entry.getKey() + "' is "
            + Json.shown(entry.getValue()) + ", expected " + wanted);
      }
      given.put(entry.getKey(), entry.getValue());
    }
  }

  /** Return what an option should be, when it is not. */
  private static String wanted(String key, JsonElement value) {
    return switch (key) {
      case "intra_op_num_threads", "inter_op_num_threads" ->
          Json.isWhole(value) && value.getAsLong() <= Integer.MAX_VALUE
              ? null
              : "a whole number >= 0";
      case "execution_mode" -> oneOf(MODES, value, "sequential, parallel");
      case "graph_optimization_level" -> oneOf(LEVELS, value, "disabled, basic, extended, all");
      case "enable_cpu_mem_arena", "enable_mem_pattern" ->
          value.isJsonPrimitive() && value.getAsJsonPrimitive().isBoolean()
              ? null
              : "true or false";
      case "provider_options" ->
          value.isJsonObject()
                  && value.getAsJsonObject().asMap().values().stream().allMatch(Json::isText)
              ? null
              : "an object of texts";
      default -> !key.contains(".") ? "one of " + KEYS : Json.isText(value) ? null : "a text";
    };
  }

  private static String oneOf(Map<String, ?> choices, JsonElement value, String names) {
    boolean good = Json.isText(value) && choices.containsKey(value.getAsString());
    return good ? null : "one of " + names;
  }

  /** Set them; what is absent keeps ONNX Runtime's own default. */
  void apply(SessionOptions options) throws OrtException {
    for (Map.Entry<String, JsonElement> entry : given.entrySet()) {
      JsonElement value = entry.getValue();
      switch (entry.getKey()) {
        case "intra_op_num_threads" -> options.setIntraOpNumThreads(value.getAsInt());
        case "inter_op_num_threads" -> options.setInterOpNumThreads(value.getAsInt());
        case "execution_mode" -> options.setExecutionMode(MODES.get(value.getAsString()));
        case "graph_optimization_level" ->
            options.setOptimizationLevel(LEVELS.get(value.getAsString()));
        case "enable_cpu_mem_arena" -> options.setCPUArenaAllocator(value.getAsBoolean());
        case "enable_mem_pattern" -> options.setMemoryPatternOptimization(value.getAsBoolean());
        case "provider_options" -> { } // Of the provider, not of the session.
        default -> options.addConfigEntry(entry.getKey(), value.getAsString());
      }
    }
  }

  /** Return the options of the provider by name. */
  Map<String, String> ofProvider() {
    Map<String, String> found = new LinkedHashMap<>();
    if (given.get("provider_options") instanceof JsonObject object) {
      object.entrySet().forEach(entry -> found.put(entry.getKey(), entry.getValue().getAsString()));
    }
    return found;
  }

  /** Return what Java's API has no place for: options of the CPU provider. */
  List<String> notSet(String provider) {
    boolean lost = provider.equals("cpu") && !ofProvider().isEmpty();
    return lost ? List.of("provider_options") : List.of();
  }

  /** Return what is set, for the record. */
  Map<String, JsonElement> set(String provider) {
    Map<String, JsonElement> found = new LinkedHashMap<>(given);
    found.keySet().removeAll(notSet(provider));
    return found;
  }
}
