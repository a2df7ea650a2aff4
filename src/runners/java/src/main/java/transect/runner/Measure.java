package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** All rows once, then timed until it is known well; and cases, without times. */
final class Measure {
  private static final double GROWTH = 1.25;
  private static final double INTERVAL_WIDTH = 0.02;

  /** Half of the 97.5 % quantile of the normal distribution. */
  private static final double HALF_Z = 0.98;

  private static final int PROFILED_RUNS = 10;

  private Measure() {}

  /** Level `latency`. */
  static void latency(OrtEnvironment environment, Plan plan, Result result)
      throws OrtException, IOException {
    Turns turns = Turns.join();
    String model = plan.text(Plan.Role.MODEL);
    try (Session session = new Session(environment, plan, model, null)) {
      List<Map<String, Tensor>> full = plan.full(allRows(session, plan, result));
      warmUp(session, full, plan.warmup);
      // Java cannot stop collecting: begin with an empty heap, and say how often it collected.
      System.gc();
      long collections = collections();
      Series series = new Series(session, full);
      result.fact(
          "stop_reason", turns == null ? untilNarrow(series, plan) : takeTurns(series, turns));
      result.fact("language_options", languageOptions(collections() - collections));
      result.process();
      result.numbers("times.bin", Arrays.copyOf(series.times, 3 * series.count));
      String profile = plan.text(Plan.Role.PROFILE);
      if (profile != null) {
        try (Session profiled = new Session(environment, plan, model, profile)) {
          profile(profiled, full.get(0), result);
        }
      }
    }
  }

  /** Run every row once and write the outputs; note facts, and when the first result was there. */
  static List<Map<String, Tensor>> allRows(Session session, Plan plan, Result result)
      throws OrtException, IOException {
    result.fact("run_includes", session.runIncludes("copy"));
    result.fact("session_ns", session.sessionNs);
    List<Map<String, Tensor>> batches = plan.batches(0);
    session.step(batches.get(0));
    // CLOCK_MONOTONIC, in HotSpot on Linux.
    result.fact("first_result_ns", System.nanoTime());
    result.fact("outputs", write(session, plan, batches, 0));
    return batches;
  }

  private static List<Object> write(
      Session session, Plan plan, List<Map<String, Tensor>> batches, int group)
      throws OrtException, IOException {
    Plan.Entry folder = plan.entries(Plan.Role.OUTPUTS, group).get(0);
    Result.Outputs outputs = new Result.Outputs(Path.of(folder.text()));
    for (int index = 0; index < batches.size(); index++) {
      session.step(batches.get(index));
      outputs.append(session, plan.rowsOf(index));
    }
    return outputs.finish();
  }

  static void warmUp(Session session, List<Map<String, Tensor>> batches, int iterations)
      throws OrtException {
    for (int index = 0; index < iterations; index++) {
      session.step(batches.get(index % batches.size()));
    }
  }

  /** Bind, run and copy of each iteration in nanoseconds. */
  private static final class Series {
    private final Session session;
    private final List<Map<String, Tensor>> batches;
    long[] times = new long[3 * 1024];
    int count;

    Series(Session session, List<Map<String, Tensor>> batches) {
      this.session = session;
      this.batches = batches;
    }

    void step() throws OrtException {
      session.step(batches.get(count % batches.size()));
      if (3 * count == times.length) {
        times = Arrays.copyOf(times, 2 * times.length);
      }
      times[3 * count] = session.bindNs;
      times[3 * count + 1] = session.runNs;
      times[3 * count + 2] = session.copyNs;
      count++;
    }
  }

  /** Time turn by turn; nothing is timed while it waits. Returns why it stopped. */
  private static String takeTurns(Series series, Turns turns) throws OrtException, IOException {
    for (long left = turns.next('r'); left > 0; left = turns.next('d')) {
      for (; left > 0; left--) {
        series.step();
      }
    }
    return "turns";
  }

  /**
   * Time until the interval is narrow or the time is up, and not before `minRuns` iterations;
   * return which.
   */
  private static String untilNarrow(Series series, Plan plan) throws OrtException {
    int nextCheck = plan.minRuns;
    long begin = System.nanoTime();
    while (true) {
      series.step();
      if (series.count < plan.minRuns) {
        continue;
      }
      if (series.count >= nextCheck) {
        nextCheck = (int) Math.ceil(series.count * GROWTH);
        if (intervalIsNarrow(series.times, series.count)) {
          return "interval-reached";
        }
      }
      if (System.nanoTime() - begin >= plan.maxNs) {
        return "time-limit";
      }
    }
  }

  /**
   * Tell whether the 95 % interval of the median run time is at most 2 % of the median wide.
   *
   * <p>Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
   * Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
   */
  private static boolean intervalIsNarrow(long[] times, int count) {
    double half = HALF_Z * Math.sqrt(count);
    long low = (long) Math.floor(0.5 * count - half);
    long high = (long) Math.ceil(0.5 * count + 1 + half);
    if (low < 1 || high > count) {
      return false;
    }
    long[] ordered = IntStream.range(0, count).mapToLong(i -> times[3 * i + 1]).sorted().toArray();
    double median = 0.5 * (ordered[(count - 1) / 2] + ordered[count / 2]);
    return ordered[(int) high - 1] - ordered[(int) low - 1] <= INTERVAL_WIDTH * median;
  }

  /** Count the garbage collections so far. */
  static long collections() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .mapToLong(GarbageCollectorMXBean::getCollectionCount)
        .sum();
  }

  /** Return the virtual machine's own flags, and how often it collected while it was timed. */
  static Map<String, Object> languageOptions(long collectionsWhileTimed) {
    return Map.of(
        "jvm_flags", ManagementFactory.getRuntimeMXBean().getInputArguments(),
        "collections_while_timed", collectionsWhileTimed);
  }

  private static void profile(Session session, Map<String, Tensor> batch, Result result)
      throws OrtException, IOException {
    long[] runs = new long[PROFILED_RUNS];
    for (int index = 0; index < runs.length; index++) {
      session.step(batch);
      runs[index] = session.runNs;
    }
    result.numbers("profile_times.bin", runs);
    result.fact("profile_file", session.endProfile());
  }

  /** Level `cases`: many small models, each run once; say of each what came of it. */
  static void cases(OrtEnvironment environment, Plan plan, Result result) throws IOException {
    for (Plan.Entry model : plan.entries(Plan.Role.MODEL)) {
      int group = model.group();
      result.say("case", group, "status", "started");
      try (Session session = new Session(environment, plan, model.text(), null)) {
        List<Object> outputs = write(session, plan, plan.batches(group), group);
        result.say("case", group, "status", "ok", "outputs", outputs);
      } catch (Fault error) {
        if (error.kind == Fault.Kind.SKIPPED) {
          // The provider is missing for every case: no verdict on this one.
          throw error;
        }
        boolean unsupported = error.kind == Fault.Kind.UNSUPPORTED;
        result.say("case", group, "status", unsupported ? "unsupported" : "failed", "message",
            error.getMessage());
      } catch (OrtException | RuntimeException | OutOfMemoryError error) {
        result.say("case", group, "status", "failed", "message", error.toString());
      }
    }
  }
}
