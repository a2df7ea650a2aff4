package transect.runner;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtException.OrtErrorCode;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One session, and what its last run gave and took. */
final class Engine implements AutoCloseable {
  private static final Set<OrtErrorCode> BAD_MODEL =
      EnumSet.of(
          OrtErrorCode.ORT_INVALID_PROTOBUF,
          OrtErrorCode.ORT_INVALID_GRAPH,
          OrtErrorCode.ORT_INVALID_ARGUMENT,
          OrtErrorCode.ORT_NO_SUCHFILE,
          OrtErrorCode.ORT_NO_MODEL);

  final long sessionNs;
  final List<String> outputNames;

  /** Of the last step, in the model's order. */
  List<Value> results = List.of();

  /** Of the last step, in nanoseconds. */
  long bindNs;

  long runNs;
  long copyNs;

  private final OrtEnvironment environment;
  private final OrtSession session;
  private final boolean cuda;

  /** Load the library and make the process's environment: what no session's time holds. */
  static OrtEnvironment environment(Path library) {
    NativeLibrary.load(library);
    return OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR, "transect");
  }

  /**
   * Make a session. `profile`: the prefix of the profiler's file, or null for no profiler.
   *
   * <p>Throws BadInput for a model or option that ONNX Runtime refuses, Skipped when the provider
   * is not there.
   */
  Engine(OrtEnvironment environment, Path model, String provider, Options options, String profile)
      throws OrtException {
    this.environment = environment;
    cuda = provider.equals("cuda");
    try (SessionOptions set = new SessionOptions()) {
      options.apply(set);
      set.setSessionLogLevel(
          profile == null
              ? OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR
              : OrtLoggingLevel.ORT_LOGGING_LEVEL_INFO);
      if (profile != null) {
        set.enableProfiling(profile);
      }
      // The provider's library is loaded for this session, and counts to it.
      long begin = System.nanoTime();
      if (cuda) {
        addCuda(set, options.ofProvider());
      }
      session = environment.createSession(model.toString(), set);
      sessionNs = System.nanoTime() - begin;
    } catch (OrtException error) {
      // `Fail` is many things: of a model that cannot be read it says so.
      boolean bad = BAD_MODEL.contains(error.getCode())
          || (error.getCode() == OrtErrorCode.ORT_FAIL
              && error.getMessage().contains("Load model from"));
      if (bad) {
        throw new BadInput(model + ": " + error.getMessage(), error);
      }
      throw error;
    }
    outputNames = List.copyOf(session.getOutputNames());
  }

  private static void addCuda(SessionOptions set, Map<String, String> options)
      throws OrtException {
    if (!OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
      throw new Skipped("this build of ONNX Runtime has no CUDAExecutionProvider");
    }
    try (OrtCUDAProviderOptions chosen = new OrtCUDAProviderOptions()) {
      for (Map.Entry<String, String> option : options.entrySet()) {
        chosen.add(option.getKey(), option.getValue());
      }
      set.addCUDA(chosen);
    } catch (OrtException error) {
      // Any of these calls may be the one that loads the provider's library, whose own ones may be
      // missing; what else they refuse is an option.
      if (error.getMessage().matches("(?s).*Failed to (find|load).*")) {
        throw new Skipped("CUDAExecutionProvider did not load: " + error.getMessage());
      }
      throw error;
    }
  }

  /** Throws BadInput unless the model takes inputs of these names, types and shapes. */
  void check(Map<String, Value> feed) throws OrtException {
    Map<String, NodeInfo> takes = session.getInputInfo();
    for (Map.Entry<String, Value> entry : feed.entrySet()) {
      String name = entry.getKey();
      if (!takes.containsKey(name)) {
        throw new BadInput("--inputs gives '" + name + "', the model takes " + takes.keySet());
      }
      Value value = entry.getValue();
      Dtype dtype = value instanceof Value.Numbers numbers ? numbers.dtype() : Dtype.STRING;
      long[] shape = value instanceof Value.Numbers numbers
          ? numbers.shape()
          : ((Value.Texts) value).shape();
      boolean fits = takes.get(name).getInfo() instanceof TensorInfo info
          && info.onnxType == dtype.onnx
          && Tensors.fit(info.getShape(), shape);
      if (!fits) {
        throw new BadInput("input '" + name + "' is " + dtype.label
            + Arrays.toString(shape) + ", the model takes " + takes.get(name).getInfo());
      }
    }
  }

  /** Throws BadInput when the model takes less than its manifest says. */
  void checkTakes(Iterable<String> inputs, Path model) throws OrtException {
    for (String input : inputs) {
      if (!session.getInputInfo().containsKey(input)) {
        throw new BadInput(model + " takes no '" + input + "', as its manifest says");
      }
    }
  }

  /**
   * Bind, run and copy to `results`.
   *
   * <p>Java's API has no I/O binding: on CUDA `Run` itself copies to the device and back.
   */
  void step(Map<String, Value> feed) throws OrtException {
    Map<String, OnnxTensor> bound = new LinkedHashMap<>();
    long start = System.nanoTime();
    try {
      for (Map.Entry<String, Value> entry : feed.entrySet()) {
        bound.put(entry.getKey(), Tensors.over(environment, entry.getKey(), entry.getValue()));
      }
      long ready = System.nanoTime();
      try (OrtSession.Result given = session.run(bound)) {
        long ran = System.nanoTime();
        List<Value> copied = new ArrayList<>(given.size());
        for (int index = 0; index < given.size(); index++) {
          copied.add(Tensors.copy(outputNames.get(index), given.get(index)));
        }
        long end = System.nanoTime();
        results = copied;
        bindNs = cuda ? 0 : ready - start;
        runNs = cuda ? end - start : ran - ready;
        copyNs = cuda ? 0 : end - ran;
      }
    } finally {
      bound.values().forEach(OnnxValue::close);
    }
  }

  /** Run once; outputs are written into the tensors that are given. */
  void runInto(Map<String, OnnxTensor> inputs, Map<String, OnnxTensor> outputs)
      throws OrtException {
    session.run(inputs, Set.of(), outputs).close();
  }

  /** Return which parts of a training step stand in the time of `Run`. */
  List<String> trainIncludes() {
    return cuda ? List.of("bind", "read") : List.of();
  }

  /** Return which parts stand in the time of `Run`. */
  List<String> runIncludes() {
    return cuda ? List.of("bind", "copy") : List.of();
  }

  /** Return the profiler's file. */
  String endProfile() throws OrtException {
    return session.endProfiling();
  }

  @Override
  public void close() throws OrtException {
    session.close();
  }
}
