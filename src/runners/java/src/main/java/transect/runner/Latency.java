package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Mode `latency`: all rows once, then timed until it is known well. */
final class Latency {
  private static final double GROWTH = 1.25;
  private static final int PROFILED_RUNS = 10;

  private Latency() {}

  /** Run all rows, write the outputs, then measure; return the record's fields. */
  static Map<String, Object> run(Arguments arguments, Options options)
      throws OrtException, IOException {
    Inputs inputs = new Inputs(arguments.path("inputs"));
    OrtEnvironment environment = Engine.environment(arguments.path("library"));
    Path model = arguments.path("model");
    try (Engine engine =
        new Engine(environment, model, arguments.provider(), options, null)) {
      Map<String, Object> record = facts(environment, engine, arguments, options);
      record.putAll(allRows(engine, inputs, arguments.path("outputs")));
      warmUp(engine, inputs.fullBatches, arguments.warmup());
      record.putAll(
          measure(engine, inputs.fullBatches, arguments.minRuns(), arguments.maxNanoseconds()));
      record.put("peak_memory_bytes", ProcessFacts.peakMemoryBytes());
      if (arguments.profile() != null) {
        try (Engine profiled =
            new Engine(environment, model, arguments.provider(), options, arguments.profile())) {
          record.putAll(profile(profiled, inputs.fullBatches.get(0)));
        }
      }
      return record;
    }
  }

  /** Return what the record says of a session. */
  static Map<String, Object> facts(
      OrtEnvironment environment, Engine engine, Arguments arguments, Options options) {
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("runtime_version", environment.getVersion());
    record.put("provider_used", arguments.provider());
    record.put("session_options", options.set(arguments.provider()));
    record.put("options_not_set", options.notSet(arguments.provider()));
    record.put("run_includes", engine.runIncludes());
    record.put("session_ns", engine.sessionNs);
    return record;
  }

  /** Run every row once and write the outputs; note when the first result was there. */
  static Map<String, Object> allRows(Engine engine, Inputs inputs, Path folder)
      throws OrtException, IOException {
    for (Map<String, Value> feed : inputs.batches) {
      engine.check(feed);
    }
    engine.step(inputs.batches.get(0));
    Map<String, Object> record = new LinkedHashMap<>();
    // CLOCK_MONOTONIC, in HotSpot on Linux.
    record.put("first_result_ns", System.nanoTime());
    OutputWriter writer = new OutputWriter(folder);
    for (int index = 0; index < inputs.batches.size(); index++) {
      engine.step(inputs.batches.get(index));
      writer.append(engine.outputNames, engine.results, inputs.rowsOf(index));
    }
    Map<String, Object> outputs = new LinkedHashMap<>();
    outputs.put("header", writer.finish().toString());
    outputs.put("rows", inputs.rows);
    record.put("outputs", outputs);
    return record;
  }

  static void warmUp(Engine engine, List<Map<String, Value>> batches, int iterations)
      throws OrtException {
    for (int index = 0; index < iterations; index++) {
      engine.step(batches.get(index % batches.size()));
    }
  }

  /** Time until the interval is narrow or the time is up, and not before `least` iterations. */
  private static Map<String, Object> measure(
      Engine engine, List<Map<String, Value>> batches, int least, long maxNanoseconds)
      throws OrtException {
    Series series = new Series(Math.max(least, 1024));
    String stop = "";
    int nextCheck = least;
    // Java cannot stop collecting: begin with an empty heap, and say how often it collected.
    System.gc();
    long collections = ProcessFacts.collections();
    long begin = System.nanoTime();
    while (stop.isEmpty()) {
      engine.step(batches.get(series.count() % batches.size()));
      series.add(engine);
      if (series.count() < least) {
        continue;
      }
      if (series.count() >= nextCheck) {
        nextCheck = (int) Math.ceil(series.count() * GROWTH);
        if (series.intervalIsNarrow()) {
          stop = "interval-reached";
        }
      }
      if (stop.isEmpty() && System.nanoTime() - begin >= maxNanoseconds) {
        stop = "time-limit";
      }
    }
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("language_options",
        ProcessFacts.languageOptions(ProcessFacts.collections() - collections));
    record.put("bind_ns", series.bind());
    record.put("run_ns", series.run());
    record.put("copy_ns", series.copy());
    record.put("stop_reason", stop);
    return record;
  }

  private static Map<String, Object> profile(Engine engine, Map<String, Value> batch)
      throws OrtException {
    long[] runs = new long[PROFILED_RUNS];
    for (int index = 0; index < runs.length; index++) {
      engine.step(batch);
      runs[index] = engine.runNs;
    }
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("profile_run_ns", runs);
    record.put("profile_file", engine.endProfile());
    return record;
  }
}
