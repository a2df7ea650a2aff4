package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Mode `cases`: many small models, each run once, without times. */
final class Cases {
  private static final List<String> KEYS = List.of("name", "model", "inputs", "outputs");

  private Cases() {}

  /** Run the cases from `--skip` on; say of each what came of it. */
  static void run(Arguments arguments, Options options) throws IOException {
    Path file = arguments.path("cases");
    JsonArray cases = read(file);
    OrtEnvironment environment = Engine.environment(arguments.path("library"));
    Path record = arguments.path("record").toAbsolutePath();
    Files.createDirectories(record.getParent());
    try (Writer writer =
        Files.newBufferedWriter(record, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
      for (int index = arguments.skip(); index < cases.size(); index++) {
        Map<String, String> given = texts(cases.get(index).getAsJsonObject());
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("case", index);
        told.put("name", given.get("name"));
        told.put("status", "started");
        say(writer, told);
        told.putAll(verdict(environment, given, arguments.provider(), options));
        say(writer, told);
      }
    }
  }

  private static JsonArray read(Path file) {
    if (!(Json.read(file) instanceof JsonArray cases)) {
      throw new BadInput(file + ": expected a list of cases");
    }
    for (JsonElement value : cases) {
      boolean good = value instanceof JsonObject object
          && KEYS.stream().allMatch(key -> Json.isText(object.get(key)));
      if (!good) {
        throw new BadInput(file + ": expected cases with " + String.join(", ", KEYS) + ", got "
            + Json.shown(value));
      }
    }
    return cases;
  }

  private static Map<String, String> texts(JsonObject object) {
    Map<String, String> found = new LinkedHashMap<>();
    KEYS.forEach(key -> found.put(key, object.get(key).getAsString()));
    return found;
  }

  private static Map<String, String> verdict(
      OrtEnvironment environment, Map<String, String> given, String provider, Options options) {
    try {
      Inputs inputs = new Inputs(Path.of(given.get("inputs")));
      try (Engine engine =
          new Engine(environment, Path.of(given.get("model")), provider, options, null)) {
        OutputWriter writer = new OutputWriter(Path.of(given.get("outputs")));
        for (int index = 0; index < inputs.batches.size(); index++) {
          engine.step(inputs.batches.get(index));
          writer.append(engine.outputNames, engine.results, inputs.rowsOf(index));
        }
        writer.finish();
      }
      return Map.of("status", "ok");
    } catch (Unsupported error) {
      return Map.of("status", "unsupported", "message", error.getMessage());
    } catch (Skipped error) {
      // The provider is missing for every case: exit code 3, no verdict on this one.
      throw error;
    } catch (BadInput error) {
      return Map.of("status", "failed", "message", error.getMessage());
    } catch (OrtException | IOException | RuntimeException | OutOfMemoryError error) {
      return Map.of("status", "failed", "message", error.toString());
    }
  }

  private static void say(Writer writer, Map<String, Object> line) throws IOException {
    writer.write(Json.text(line) + "\n");
    writer.flush();
  }
}
