package transect.runner;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Level `train`: steps in order, what they took, and checkpoints.
 *
 * <p>All lies in direct buffers, which ONNX Runtime reads and writes without a copy. The state is
 * in two sets of tensors that change places.
 */
final class Train implements AutoCloseable {
  /** Memory, and the tensor that was made over it. */
  private record Bound(ByteBuffer numbers, OnnxTensor tensor) {}

  /** Rows of a data tensor: from all of them into the batch. */
  private record Rows(ByteBuffer from, ByteBuffer into, int bytes) {}

  /** A hyper-parameter: from a value for each step into the scalar that is bound. */
  private record Hyper(ByteBuffer from, ByteBuffer into) {}

  /** A graph, and what it takes and gives: links to other entries. */
  private record Graph(Session session, List<Plan.Entry> takes, List<Plan.Entry> gives) {}

  /** Sums over a step's micro-batches: gather, bind, run, read. */
  private static final int PARTS = 4;

  private final OrtEnvironment environment;
  private final Plan plan;
  private final Result result;
  private final Map<String, Graph> graphs;
  private final long[] order;
  private final List<Plan.Entry> metrics;

  /** What the graphs take, by number of the entry: the state as it is now, and all else. */
  private final Map<Integer, Bound> given = new HashMap<>();

  /** What the graphs write, by number of the entry: the state as it is next, and metrics. */
  private final Map<Integer, Bound> written = new HashMap<>();

  private final List<Rows> rows = new ArrayList<>();
  private final List<Hyper> hypers = new ArrayList<>();
  private int checkpoints;

  private Train(
      OrtEnvironment environment, Plan plan, Result result, Map<String, Graph> graphs)
      throws OrtException {
    this.environment = environment;
    this.plan = plan;
    this.result = result;
    this.graphs = graphs;
    order = plan.longs(Plan.Role.ORDER);
    metrics = plan.entries(Plan.Role.METRIC);
    for (Plan.Entry entry : plan.entries(Plan.Role.STATE)) {
      Bound first = made(entry.name(), entry.dtype(), entry.shape());
      first.numbers.put(0, Plan.data(entry), 0, (int) entry.size());
      given.put(entry.number(), first);
    }
    for (Plan.Entry link : plan.entries(Plan.Role.GIVES)) {
      if (!written.containsKey(link.link())) {
        Plan.Entry entry = plan.entry(link.link());
        written.put(entry.number(), made(entry.name(), entry.dtype(), entry.shape()));
      }
    }
    for (Plan.Entry entry : plan.entries(Plan.Role.HYPER)) {
      given.put(entry.number(), made(entry.name(), Tensor.FLOAT64, new long[0]));
      hypers.add(new Hyper(Plan.data(entry), given.get(entry.number()).numbers));
    }
    for (Plan.Entry entry : plan.entries(Plan.Role.SEED)) {
      given.put(entry.number(), made(entry.name(), Tensor.INT64, new long[0]));
      given.get(entry.number()).numbers.putLong(0, plan.seed);
    }
    for (Plan.Entry entry : plan.entries(Plan.Role.DATA)) {
      long[] shape = entry.shape().clone();
      shape[0] = plan.batch;
      Bound batch = made(entry.name(), entry.dtype(), shape);
      given.put(entry.number(), batch);
      int bytes = batch.numbers.capacity() / plan.batch;
      rows.add(new Rows(Plan.data(entry), batch.numbers, bytes));
    }
  }

  private Bound made(String name, int dtype, long[] shape) throws OrtException {
    long size = Arrays.stream(shape).reduce(Tensor.made(name, dtype).size, (a, b) -> a * b);
    ByteBuffer numbers = ByteBuffer.allocateDirect(Plan.small(name, size));
    numbers.order(ByteOrder.nativeOrder());
    return new Bound(
        numbers, OnnxTensor.createTensor(environment, numbers, shape, Tensor.made(name, dtype)));
  }

  /** Do the steps. */
  static void run(OrtEnvironment environment, Plan plan, Result result)
      throws OrtException, IOException {
    Map<String, Graph> graphs = new HashMap<>();
    try {
      for (Plan.Entry graph : plan.entries(Plan.Role.GRAPH)) {
        graphs.put(
            graph.name(),
            new Graph(
                new Session(environment, plan, graph.text(), null),
                plan.entries(Plan.Role.TAKES, graph.group()),
                plan.entries(Plan.Role.GIVES, graph.group())));
      }
      result.fact("run_includes", graphs.get("step").session.runIncludes("read"));
      result.fact("session_ns", graphs.values().stream().mapToLong(g -> g.session.sessionNs).sum());
      try (Train train = new Train(environment, plan, result, graphs)) {
        train.steps();
      }
    } finally {
      for (Graph graph : graphs.values()) {
        graph.session.close();
      }
    }
  }

  /** Go on to the end, or to a loss or state that is not finite; write what it took and gave. */
  private void steps() throws OrtException, IOException {
    long[] times = new long[PARTS * plan.steps];
    long[] means = new long[metrics.size() * plan.steps];
    boolean finite = true;
    int done = 0;
    while (done < plan.steps && finite) {
      double[] found = update(done, times);
      for (int metric = 0; metric < found.length; metric++) {
        means[done * found.length + metric] = Double.doubleToRawLongBits(found[metric]);
      }
      done++;
      finite = Double.isFinite(found[0]);
      boolean due =
          plan.checkpointEvery > 0 && (plan.firstStep + done) % plan.checkpointEvery == 0;
      if (finite && (due || done == plan.steps)) {
        save(plan.firstStep + done);
        // The next checkpoint would take the place of the last good one.
        finite = areFinite();
      }
    }
    if (plan.steps == 0) {
      save(plan.firstStep);
    }
    result.process();
    result.numbers("times.bin", Arrays.copyOf(times, PARTS * done));
    result.numbers("metrics.bin", Arrays.copyOf(means, metrics.size() * done));
  }

  /** Do a step; add what its parts took to `times`. Returns the metrics' means. */
  private double[] update(int index, long[] times) throws OrtException {
    double[] means = new double[metrics.size()];
    boolean timesApart = graphs.get("step").session.runIncludes("read").isEmpty();
    for (int micro = 0; micro < plan.accumulate; micro++) {
      boolean last = micro + 1 == plan.accumulate;
      Graph graph = graphs.get(last ? "step" : "accumulate");
      long begin = System.nanoTime();
      gather(index * plan.accumulate + micro);
      long gathered = System.nanoTime();
      for (Hyper hyper : hypers) {
        hyper.into.putDouble(0, hyper.from.getDouble(index * Double.BYTES));
      }
      Map<String, OnnxTensor> inputs = pick(graph.takes, given);
      Map<String, OnnxTensor> outputs = pick(graph.gives, written);
      long bound = timesApart ? System.nanoTime() : gathered;
      graph.session.runInto(inputs, outputs);
      long ran = System.nanoTime();
      for (int metric = 0; metric < means.length; metric++) {
        means[metric] += read(metrics.get(metric));
      }
      swap(graph);
      long end = timesApart ? System.nanoTime() : ran;
      times[PARTS * index] += gathered - begin;
      times[PARTS * index + 1] += bound - gathered;
      times[PARTS * index + 2] += ran - bound;
      times[PARTS * index + 3] += end - ran;
    }
    for (int metric = 0; metric < means.length; metric++) {
      means[metric] /= plan.accumulate;
    }
    return means;
  }

  /** Copy the rows of a batch, counted over all micro-batches, into the tensors that are bound. */
  private void gather(int batch) {
    for (Rows tensor : rows) {
      for (int row = 0; row < plan.batch; row++) {
        int from = (int) order[batch * plan.batch + row] * tensor.bytes;
        tensor.into.put(row * tensor.bytes, tensor.from, from, tensor.bytes);
      }
    }
  }

  private static Map<String, OnnxTensor> pick(List<Plan.Entry> links, Map<Integer, Bound> from) {
    Map<String, OnnxTensor> picked = new LinkedHashMap<>();
    links.forEach(link -> picked.put(link.name(), from.get(link.link()).tensor));
    return picked;
  }

  private double read(Plan.Entry metric) {
    ByteBuffer numbers = written.get(metric.number()).numbers;
    return metric.dtype() == Tensor.FLOAT64 ? numbers.getDouble(0) : numbers.getFloat(0);
  }

  /** Let what a graph has written be the state; what was it is written next. */
  private void swap(Graph graph) {
    for (Plan.Entry link : graph.gives) {
      if (given.containsKey(link.link())) {
        Bound next = written.put(link.link(), given.get(link.link()));
        given.put(link.link(), next);
      }
    }
  }

  /** Write a checkpoint, in the places that the plan has for the state. */
  private void save(long updates) throws IOException {
    long begin = System.nanoTime();
    int slot = checkpoints++ % 2;
    Path path = result.folder.resolve("state-" + slot + ".bin");
    try (FileChannel channel =
        FileChannel.open(
            path,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      for (Plan.Entry entry : plan.entries(Plan.Role.STATE)) {
        ByteBuffer numbers = given.get(entry.number()).numbers.duplicate();
        while (numbers.hasRemaining()) {
          channel.write(numbers, entry.at() + numbers.position());
        }
      }
      if (channel.size() < plan.stateBytes) {
        channel.write(ByteBuffer.allocate(1), plan.stateBytes - 1);
      }
      channel.force(true);
    } catch (IOException error) {
      throw new IOException(path + ": the checkpoint cannot be written: " + error, error);
    }
    result.say("checkpoint", updates, "slot", slot, "ns", System.nanoTime() - begin);
  }

  /** Tell whether all numbers of the state are finite. */
  private boolean areFinite() {
    return plan.entries(Plan.Role.STATE).stream().allMatch(entry -> {
      ByteBuffer numbers = given.get(entry.number()).numbers;
      // All bits of the exponent are set in infinity and NaN.
      return switch (entry.dtype()) {
        case Tensor.FLOAT32 -> none(numbers, 4, at -> ~numbers.getInt(at) & 0x7f800000);
        case Tensor.FLOAT64 -> none(numbers, 8, at -> ~numbers.getInt(at + 4) & 0x7ff00000);
        case Tensor.FLOAT16 -> none(numbers, 2, at -> ~numbers.getShort(at) & 0x7c00);
        default -> true;
      };
    });
  }

  private static boolean none(ByteBuffer numbers, int size, IntUnaryOperator clearBits) {
    return IntStream.range(0, numbers.capacity() / size)
        .allMatch(index -> clearBits.applyAsInt(index * size) != 0);
  }

  @Override
  public void close() {
    given.values().forEach(bound -> bound.tensor.close());
    written.values().forEach(bound -> bound.tensor.close());
  }
}
