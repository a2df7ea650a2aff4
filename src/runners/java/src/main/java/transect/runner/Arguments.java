package transect.runner;

import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The contract's arguments: `--name value`, each at most once. */
final class Arguments {
  private static final List<String> NAMES =
      List.of(
          "mode", "model", "inputs", "outputs", "provider", "options", "library", "record",
          "warmup", "min-runs", "max-seconds", "profile", "sessions", "arrivals", "cases", "skip",
          "step", "batch", "order", "until", "state", "checkpoint", "checkpoint-every", "schedule",
          "accumulate", "seed");
  private static final Map<String, List<String>> NEEDED =
      Map.of(
          "latency", List.of("model", "inputs", "outputs"),
          "load", List.of("model", "inputs", "outputs", "arrivals"),
          "cases", List.of("cases"),
          "train", List.of("step", "inputs", "batch", "order", "until", "checkpoint"));

  /** More than anybody waits for; in nanoseconds it is far from the end of `long`. */
  private static final double MOST_SECONDS = 1e9;

  private final Map<String, String> given = new HashMap<>();

  /** Throws BadInput naming the argument that cannot be used. */
  Arguments(String[] arguments) {
    for (int index = 0; index < arguments.length; index += 2) {
      String name = arguments[index].startsWith("--") ? arguments[index].substring(2) : "";
      if (!NAMES.contains(name)) {
        throw new BadInput("argument '" + arguments[index] + "': expected one of --"
            + String.join(", --", NAMES));
      }
      if (index + 1 == arguments.length) {
        throw new BadInput("argument --" + name + ": expected a value after it");
      }
      if (given.put(name, arguments[index + 1]) != null) {
        throw new BadInput("argument --" + name + " is given twice, expected once");
      }
    }
    List<String> needed = NEEDED.get(mode());
    if (needed == null) {
      throw new BadInput("--mode " + mode() + ": expected one of latency, load, cases, train");
    }
    for (String name : needed) {
      if (!given.containsKey(name)) {
        throw new BadInput("--mode " + mode() + " needs --" + name);
      }
    }
    if (!given.containsKey("record")) {
      throw new BadInput("--record is needed: the file that says what was done");
    }
    if (needed.contains("model") && !Files.isRegularFile(path("model"))) {
      throw new BadInput(given.get("model") + ": no such model file");
    }
    warmup();
    minRuns();
    maxNanoseconds();
    sessions();
    skip();
    batch();
    until();
    checkpointEvery();
    accumulate();
    seed();
  }

  /** Return `--record`, however wrong the other arguments are, or null. */
  static Path record(String[] arguments) {
    for (int index = 0; index + 1 < arguments.length; index++) {
      if (arguments[index].equals("--record")) {
        return toPath("record", arguments[index + 1]);
      }
    }
    return null;
  }

  String mode() {
    return given.getOrDefault("mode", "latency");
  }

  String provider() {
    return given.getOrDefault("provider", "cpu");
  }

  /** Return the path of an argument, or null when it is not given. */
  Path path(String name) {
    String text = given.get(name);
    return text == null ? null : toPath(name, text);
  }

  /** Return the prefix of the profile's file, or null. */
  String profile() {
    return given.get("profile");
  }

  int warmup() {
    return whole("warmup", 20, 0);
  }

  int minRuns() {
    return whole("min-runs", 100, 1);
  }

  int sessions() {
    return whole("sessions", 1, 1);
  }

  int skip() {
    return whole("skip", 0, 0);
  }

  int batch() {
    return whole("batch", 1, 1);
  }

  int until() {
    return whole("until", 0, 0);
  }

  int checkpointEvery() {
    return whole("checkpoint-every", 0, 0);
  }

  int accumulate() {
    return whole("accumulate", 1, 1);
  }

  long seed() {
    String text = given.getOrDefault("seed", "0");
    if (text.matches("[0-9]+")) {
      try {
        return Long.parseLong(text);
      } catch (NumberFormatException error) {
        // Said below: it is more than 63 bits.
      }
    }
    throw new BadInput("--seed " + text + ": expected a whole number from 0 to 2^63 - 1");
  }

  long maxNanoseconds() {
    String text = given.getOrDefault("max-seconds", "1.0");
    try {
      double seconds = Double.parseDouble(text);
      if (seconds >= 0 && seconds < Double.POSITIVE_INFINITY) {
        return (long) (Math.min(seconds, MOST_SECONDS) * 1e9);
      }
    } catch (NumberFormatException error) {
      // Said below, like a number that is none of seconds.
    }
    throw new BadInput("--max-seconds " + text + ": expected seconds >= 0");
  }

  private int whole(String name, int otherwise, int least) {
    String text = given.get(name);
    if (text == null) {
      return otherwise;
    }
    try {
      int value = Integer.parseInt(text);
      if (value >= least) {
        return value;
      }
    } catch (NumberFormatException error) {
      // Said below, like a number that is too small.
    }
    throw new BadInput("--" + name + " " + text + ": expected a whole number >= " + least);
  }

  private static Path toPath(String name, String text) {
    try {
      return Path.of(text);
    } catch (InvalidPathException error) {
      throw new BadInput("--" + name + ": no path: " + error.getMessage(), error);
    }
  }
}
