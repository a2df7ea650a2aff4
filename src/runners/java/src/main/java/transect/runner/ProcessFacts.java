package transect.runner;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** What the record says of the process and its virtual machine. */
final class ProcessFacts {
  private static final Path STATUS = Path.of("/proc/self/status");
  private static final Path MAPS = Path.of("/proc/self/maps");

  private ProcessFacts() {}

  /** Return language, cores, and where ONNX Runtime lies. */
  static Map<String, Object> all() throws IOException {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("language_version", "Java " + System.getProperty("java.version") + " ("
        + System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version") + ")");
    facts.put("cpus_allowed", status("Cpus_allowed_list"));
    facts.put("input_residency", "host");
    facts.put("library_file", library());
    return facts;
  }

  /** Return the largest resident set so far. */
  static long peakMemoryBytes() throws IOException {
    return Long.parseLong(status("VmHWM").replace(" kB", "")) * 1024;
  }

  /** Count the garbage collections so far. */
  static long collections() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .mapToLong(GarbageCollectorMXBean::getCollectionCount)
        .sum();
  }

  /** Return the virtual machine's own flags, and how often it collected while it was timed. */
  static Map<String, Object> languageOptions(long collectionsWhileTimed) {
    Map<String, Object> options = new LinkedHashMap<>();
    options.put("jvm_flags", ManagementFactory.getRuntimeMXBean().getInputArguments());
    options.put("collections_while_timed", collectionsWhileTimed);
    return options;
  }

  private static String status(String key) throws IOException {
    try (var lines = Files.lines(STATUS)) {
      return lines
          .filter(line -> line.startsWith(key + ":"))
          .map(line -> line.substring(key.length() + 1).strip())
          .findFirst()
          .orElseThrow(() -> new IOException(STATUS + " has no " + key));
    }
  }

  private static String library() throws IOException {
    try (var lines = Files.lines(MAPS)) {
      return lines
          .filter(line -> line.contains("libonnxruntime.so"))
          .map(line -> line.substring(line.indexOf('/')))
          .findFirst()
          .orElseThrow(() -> new IOException(MAPS + " shows no libonnxruntime.so"));
    }
  }
}
