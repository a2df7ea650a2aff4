package transect.runner;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The state of a step in two sets of tensors that change places, and what goes into a run beside it.
 *
 * <p>All lies in direct buffers, which ONNX Runtime reads and writes without a copy.
 */
final class Trainer implements AutoCloseable {
  /** Memory, and the tensor that was made over it. */
  private record Bound(ByteBuffer numbers, OnnxTensor tensor) {}

  /** Rows of a data tensor: from all of them into the batch. */
  private record Rows(ByteBuffer from, ByteBuffer into, int bytes) {}

  private final OrtEnvironment environment;
  private final Training training;

  /** What the graphs take, by name: the state as it is now, and all else. */
  private final Map<String, Bound> given = new HashMap<>();

  /** What the graphs write, by name. */
  private final Map<String, Bound> written = new HashMap<>();

  private final List<Rows> rows = new ArrayList<>();

  Trainer(OrtEnvironment environment, Training training) throws OrtException {
    this.environment = environment;
    this.training = training;
    Manifest manifest = training.manifest;
    for (StateTensor tensor : manifest.state) {
      ByteBuffer numbers = training.state.get(tensor.name());
      given.put(tensor.name(), bound(tensor.dtype(), tensor.shape(), numbers));
      if (tensor.next() != null) {
        written.put(tensor.next(), made(tensor.dtype(), tensor.shape()));
      }
    }
    for (Map.Entry<String, Dtype> metric : manifest.metrics.entrySet()) {
      written.put(metric.getKey(), made(metric.getValue(), new long[0]));
    }
    for (String name : manifest.hyper.keySet()) {
      given.put(name, made(Dtype.FLOAT64, new long[0]));
    }
    if (manifest.seed != null) {
      given.put(manifest.seed, made(Dtype.INT64, new long[0]));
      given.get(manifest.seed).numbers.putLong(0, training.seed);
    }
    for (Map.Entry<String, Value.Numbers> entry : training.data.entrySet()) {
      Value.Numbers all = entry.getValue();
      long[] shape = all.shape().clone();
      shape[0] = training.batch;
      Bound batch = made(all.dtype(), shape);
      given.put(entry.getKey(), batch);
      int bytes = batch.numbers.capacity() / training.batch;
      rows.add(new Rows(all.bytes(), batch.numbers, bytes));
    }
  }

  private Bound made(Dtype dtype, long[] shape) throws OrtException {
    long size = Tensors.bytes(shape, dtype);
    if (size < 0 || size > Tensors.LARGEST_BUFFER) {
      throw new BadInput("a tensor of " + Tensors.describe(dtype, shape)
          + ": Java's buffers hold less than 2 GiB");
    }
    return bound(dtype, shape, ByteBuffer.allocateDirect((int) size));
  }

  private Bound bound(Dtype dtype, long[] shape, ByteBuffer numbers) throws OrtException {
    if (dtype.made == null) {
      throw new Unsupported("a tensor of " + dtype.label + ": Java's API makes no such tensor");
    }
    numbers.order(ByteOrder.nativeOrder());
    return new Bound(
        numbers, OnnxTensor.createTensor(environment, numbers, shape, dtype.made));
  }

  /** Copy the rows of a batch, counted over all micro-batches, into the tensors that are bound. */
  void gather(int batch) {
    for (Rows tensor : rows) {
      for (int row = 0; row < training.batch; row++) {
        int from = (int) training.order[batch * training.batch + row] * tensor.bytes;
        tensor.into.put(row * tensor.bytes, tensor.from, from, tensor.bytes);
      }
    }
  }

  /** Return what a graph takes in a step. */
  Map<String, OnnxTensor> inputs(Manifest.Graph graph, int step) {
    for (String name : training.manifest.hyper.keySet()) {
      given.get(name).numbers.putDouble(0, training.hyper(name, step));
    }
    return pick(graph.inputs(), given);
  }

  /** Return what a graph writes. */
  Map<String, OnnxTensor> outputs(Manifest.Graph graph) {
    return pick(graph.outputs(), written);
  }

  private static Map<String, OnnxTensor> pick(List<String> names, Map<String, Bound> from) {
    Map<String, OnnxTensor> picked = new LinkedHashMap<>();
    names.forEach(name -> picked.put(name, from.get(name).tensor));
    return picked;
  }

  /** Let what a graph has written be the state; what was it is written next. */
  void swap(Manifest.Graph graph) {
    for (StateTensor tensor : training.manifest.state) {
      if (tensor.next() != null && graph.outputs().contains(tensor.next())) {
        Bound next = written.put(tensor.next(), given.get(tensor.name()));
        given.put(tensor.name(), next);
      }
    }
  }

  /** Return a metric of the last run. */
  double metric(String name, Dtype dtype) {
    ByteBuffer numbers = written.get(name).numbers;
    return dtype == Dtype.FLOAT64 ? numbers.getDouble(0) : numbers.getFloat(0);
  }

  /** Return the numbers of the state as it is now. */
  Map<String, ByteBuffer> state() {
    Map<String, ByteBuffer> state = new HashMap<>();
    training.manifest.state.forEach(t -> state.put(t.name(), given.get(t.name()).numbers));
    return state;
  }

  @Override
  public void close() {
    given.values().forEach(bound -> bound.tensor.close());
    written.values().forEach(bound -> bound.tensor.close());
  }
}
