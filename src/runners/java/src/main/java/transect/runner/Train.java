package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Mode `train`: steps in order, what they took, and checkpoints. */
final class Train {
  private static final List<String> PARTS = List.of("gather_ns", "bind_ns", "run_ns", "read_ns");

  private final Training training;
  private final Trainer trainer;
  private final Engine step;
  private final Engine accumulate;

  /** One series a metric, in the manifest's order: the loss is the first. */
  private final Map<String, List<Double>> metrics = new LinkedHashMap<>();

  /** One series a part, in nanoseconds. */
  private final Map<String, List<Long>> times = new LinkedHashMap<>();

  private final List<Map<String, Long>> checkpoints = new ArrayList<>();

  private Train(Training training, Trainer trainer, Engine step, Engine accumulate) {
    this.training = training;
    this.trainer = trainer;
    this.step = step;
    this.accumulate = accumulate;
    training.manifest.metrics.keySet().forEach(name -> metrics.put(name, new ArrayList<>()));
    PARTS.forEach(part -> times.put(part, new ArrayList<>()));
  }

  private static void check(Engine engine, Manifest.Graph graph) throws OrtException {
    engine.checkTakes(graph.inputs(), graph.file());
  }

  /** Train; return the record's fields. Throws Diverged, which has them too. */
  static Map<String, Object> run(Arguments arguments, Options options)
      throws OrtException, IOException, Diverged {
    Training training = new Training(arguments);
    OrtEnvironment environment = Engine.environment(arguments.path("library"));
    String provider = arguments.provider();
    Manifest manifest = training.manifest;
    try (Engine step =
            new Engine(environment, manifest.graphs.get("step").file(), provider, options, null);
        Engine accumulate =
            training.accumulate == 1
                ? null
                : new Engine(
                    environment,
                    manifest.graphs.get("accumulate").file(),
                    provider,
                    options,
                    null);
        Trainer trainer = new Trainer(environment, training)) {
      check(step, manifest.graphs.get("step"));
      if (accumulate != null) {
        check(accumulate, manifest.graphs.get("accumulate"));
      }
      StateFile.removeLeft(training.checkpoint);
      Train train = new Train(training, trainer, step, accumulate);
      Map<String, Object> record = Latency.facts(environment, step, arguments, options);
      record.put("run_includes", step.trainIncludes());
      if (accumulate != null) {
        record.put("session_ns", step.sessionNs + accumulate.sessionNs);
      }
      String diverged = train.steps();
      record.putAll(train.fields());
      record.put("peak_memory_bytes", ProcessFacts.peakMemoryBytes());
      if (diverged != null) {
        throw new Diverged(diverged, record);
      }
      return record;
    }
  }

  /** Go on to the end; return how it diverged, or null. */
  private String steps() throws OrtException, IOException {
    for (int index = training.first; index < training.until; index++) {
      Means means = update(index);
      if (!Double.isFinite(means.metrics[0])) {
        return "the loss of step " + index + " is " + means.metrics[0]
            + ": the rate is too high, or the target has a class that the model does not";
      }
      boolean due =
          training.checkpointEvery > 0 && (index + 1) % training.checkpointEvery == 0;
      String bad = due || index + 1 == training.until ? save(index + 1) : null;
      if (bad != null) {
        return "after step " + index + " '" + bad + "' is not finite";
      }
      note(means);
    }
    if (training.first == training.until) {
      save(training.until);
    }
    return null;
  }

  /** Of a step: means over its micro-batches, and the sums of the parts' nanoseconds. */
  private record Means(double[] metrics, long[] times) {}

  private Means update(int index) throws OrtException {
    double[] sums = new double[metrics.size()];
    long[] spent = new long[PARTS.size()];
    boolean timesApart = step.trainIncludes().isEmpty();
    for (int micro = 0; micro < training.accumulate; micro++) {
      boolean last = micro + 1 == training.accumulate;
      Manifest.Graph graph = training.manifest.graphs.get(last ? "step" : "accumulate");
      long begin = System.nanoTime();
      trainer.gather(index * training.accumulate + micro);
      long gathered = System.nanoTime();
      var inputs = trainer.inputs(graph, index);
      var outputs = trainer.outputs(graph);
      long bound = timesApart ? System.nanoTime() : gathered;
      (last ? step : accumulate).runInto(inputs, outputs);
      long ran = System.nanoTime();
      int place = 0;
      for (Map.Entry<String, Dtype> metric : training.manifest.metrics.entrySet()) {
        sums[place++] += trainer.metric(metric.getKey(), metric.getValue());
      }
      trainer.swap(graph);
      long end = timesApart ? System.nanoTime() : ran;
      spent[0] += gathered - begin;
      spent[1] += bound - gathered;
      spent[2] += ran - bound;
      spent[3] += end - ran;
    }
    for (int place = 0; place < sums.length; place++) {
      sums[place] /= training.accumulate;
    }
    return new Means(sums, spent);
  }

  private void note(Means means) {
    int place = 0;
    for (List<Double> series : metrics.values()) {
      // JSON has no number that is none: of the metrics only the loss is known to be finite.
      double mean = means.metrics[place++];
      series.add(Double.isFinite(mean) ? mean : null);
    }
    place = 0;
    for (List<Long> series : times.values()) {
      series.add(means.times[place++]);
    }
  }

  /** Write a checkpoint; return what is not finite, and then none is written. */
  private String save(int done) throws IOException {
    long begin = System.nanoTime();
    String bad = StateFile.notFinite(trainer.state(), training.manifest);
    if (bad == null) {
      StateFile.write(training.checkpoint, training.manifest, trainer.state());
      checkpoints.add(Map.of("step", (long) done, "ns", System.nanoTime() - begin));
    }
    return bad;
  }

  private Map<String, Object> fields() {
    Map<String, Object> fields = new LinkedHashMap<>();
    Map<String, List<Double>> others = new LinkedHashMap<>(metrics);
    fields.put("losses", others.remove(metrics.keySet().iterator().next()));
    fields.put("metrics", others);
    fields.put("first_step", training.first);
    fields.putAll(times);
    fields.put("checkpoints", checkpoints);
    fields.put("state", training.checkpoint.toString());
    fields.put("step_graph", training.manifest.stepGraph);
    return fields;
  }
}
