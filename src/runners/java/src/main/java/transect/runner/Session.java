package transect.runner;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtException.OrtErrorCode;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.OrtSession.SessionOptions.ExecutionMode;
import ai.onnxruntime.OrtSession.SessionOptions.OptLevel;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One session, and what its last run gave and took. */
final class Session implements AutoCloseable {
  private static final Set<OrtErrorCode> BAD_MODEL =
      EnumSet.of(
          OrtErrorCode.ORT_INVALID_PROTOBUF,
          OrtErrorCode.ORT_INVALID_GRAPH,
          OrtErrorCode.ORT_INVALID_ARGUMENT,
          OrtErrorCode.ORT_NO_SUCHFILE,
          OrtErrorCode.ORT_NO_MODEL);

  private static final Map<String, OptLevel> LEVELS =
      Map.of(
          "disabled", OptLevel.NO_OPT,
          "basic", OptLevel.BASIC_OPT,
          "extended", OptLevel.EXTENDED_OPT,
          "all", OptLevel.ALL_OPT);

  final long sessionNs;
  final List<String> outputNames;

  /** Of the last step, in the model's order; null is what is no tensor. */
  List<Tensor> results = List.of();

  /** Of the last step, in nanoseconds. */
  long bindNs;

  long runNs;
  long copyNs;

  private final OrtEnvironment environment;
  private final OrtSession session;
  private final boolean cuda;

  /**
   * Load ONNX Runtime and Java's binding to it, so that its own loader takes none from its jar,
   * and make the process's environment.
   *
   * <p>Throws UnsatisfiedLinkError when one cannot be loaded.
   */
  static OrtEnvironment environment(Plan plan) {
    Path library = Path.of(plan.text(Plan.Role.LIBRARY)).toAbsolutePath();
    // The binding needs libonnxruntime.so.1 by that name, and finds the one that is loaded.
    System.load(library.toString());
    // Set by the launcher: where it lies, unpacked from ONNX Runtime's jar.
    System.load(System.getProperty("transect.binding"));
    System.setProperty("onnxruntime.native.onnxruntime.skip", "true");
    System.setProperty("onnxruntime.native.onnxruntime4j_jni.skip", "true");
    // Where libonnxruntime_providers_cuda.so lies.
    System.setProperty("onnxruntime.native.path", library.getParent().toString());
    return OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR, "transect");
  }

  /**
   * Make a session. `profile`: the prefix of the profiler's file, or null for no profiler.
   *
   * <p>Throws Fault for a model or option that ONNX Runtime refuses, and where the provider is not
   * there.
   */
  Session(OrtEnvironment environment, Plan plan, String model, String profile)
      throws OrtException {
    this.environment = environment;
    String provider = plan.text(Plan.Role.PROVIDER);
    cuda = provider.equals("cuda");
    if (!cuda && !provider.equals("cpu")) {
      throw Fault.skipped("Java's API is asked for cpu and cuda here, not for " + provider);
    }
    try (SessionOptions set = new SessionOptions()) {
      for (Plan.Entry option : plan.entries(Plan.Role.OPTION)) {
        apply(set, option.name(), option.text());
      }
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
        addCuda(set, plan.entries(Plan.Role.PROVIDER_OPTION));
      }
      session = environment.createSession(model, set);
      sessionNs = System.nanoTime() - begin;
    } catch (OrtException error) {
      // `Fail` is many things: of a model that cannot be read it says so.
      boolean bad = BAD_MODEL.contains(error.getCode())
          || (error.getCode() == OrtErrorCode.ORT_FAIL
              && error.getMessage().contains("Load model from"));
      if (bad) {
        throw Fault.badInput(model + ": " + error.getMessage(), error);
      }
      throw error;
    }
    outputNames = List.copyOf(session.getOutputNames());
  }

  private static void apply(SessionOptions options, String name, String text)
      throws OrtException {
    switch (name) {
      case "intra_op_num_threads" -> options.setIntraOpNumThreads(Integer.parseInt(text));
      case "inter_op_num_threads" -> options.setInterOpNumThreads(Integer.parseInt(text));
      case "execution_mode" ->
          options.setExecutionMode(
              text.equals("parallel") ? ExecutionMode.PARALLEL : ExecutionMode.SEQUENTIAL);
      case "graph_optimization_level" -> options.setOptimizationLevel(LEVELS.get(text));
      case "enable_cpu_mem_arena" -> options.setCPUArenaAllocator(text.equals("1"));
      case "enable_mem_pattern" -> options.setMemoryPatternOptimization(text.equals("1"));
      default -> options.addConfigEntry(name, text);
    }
  }

  private static void addCuda(SessionOptions set, List<Plan.Entry> options) throws OrtException {
    if (!OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
      throw Fault.skipped("this build of ONNX Runtime has no CUDAExecutionProvider");
    }
    try (OrtCUDAProviderOptions chosen = new OrtCUDAProviderOptions()) {
      for (Plan.Entry option : options) {
        chosen.add(option.name(), option.text());
      }
      set.addCUDA(chosen);
    } catch (OrtException error) {
      // Any of these calls may be the one that loads the provider's library, whose own ones may be
      // missing; what else they refuse is an option.
      if (error.getMessage().matches("(?s).*Failed to (find|load).*")) {
        throw Fault.skipped("CUDAExecutionProvider did not load: " + error.getMessage());
      }
      throw error;
    }
  }

  /**
   * Bind, run and copy to `results`.
   *
   * <p>Java's API has no I/O binding: on CUDA `Run` itself copies to the device and back.
   */
  void step(Map<String, Tensor> feed) throws OrtException {
    Map<String, OnnxTensor> bound = new LinkedHashMap<>();
    long start = System.nanoTime();
    try {
      for (Map.Entry<String, Tensor> entry : feed.entrySet()) {
        bound.put(entry.getKey(), entry.getValue().over(environment, entry.getKey()));
      }
      long ready = System.nanoTime();
      try (OrtSession.Result given = session.run(bound)) {
        long ran = System.nanoTime();
        List<Tensor> copied = new ArrayList<>(given.size());
        for (int index = 0; index < given.size(); index++) {
          copied.add(Tensor.copy(outputNames.get(index), given.get(index)));
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

  /** Return which parts stand in the time of `Run`: on CUDA `bind` and what brings results back. */
  List<String> runIncludes(String back) {
    return cuda ? List.of("bind", back) : List.of();
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
