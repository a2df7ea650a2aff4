package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtException.OrtErrorCode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** ONNX Runtime from Java, under the runner contract (docs/runner-contract.md). */
public final class Main {
  private static final int CRASH = 1;
  private static final int BAD_INPUT = 2;
  private static final int SKIPPED = 3;

  private Main() {}

  /** Do what the plan says; end with the contract's exit code. */
  public static void main(String[] arguments) {
    System.exit(run(arguments));
  }

  private static int run(String[] arguments) {
    if (arguments.length != 1) {
      say("usage: transect-runner-java PLAN");
      return BAD_INPUT;
    }
    Plan plan;
    try {
      plan = new Plan(Path.of(arguments[0]));
    } catch (Fault refused) {
      say(refused.getMessage());
      return BAD_INPUT;
    }
    try (Result result = new Result(Path.of(plan.text(Plan.Role.OUT)))) {
      try {
        work(plan, result);
        return 0;
      } catch (Throwable error) {
        return tell(error, result);
      }
    } catch (IOException error) {
      say("the result cannot be written: " + error);
      return CRASH;
    }
  }

  private static void work(Plan plan, Result result)
      throws OrtException, IOException, InterruptedException {
    OrtEnvironment environment = Session.environment(plan);
    String provider = plan.text(Plan.Role.PROVIDER);
    // Java's API has no place for options of the CPU provider.
    boolean lost =
        provider.equals("cpu") && !plan.entries(Plan.Role.PROVIDER_OPTION).isEmpty();
    result.fact("runtime_version", environment.getVersion());
    result.fact("language_version", "Java " + System.getProperty("java.version") + " ("
        + System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version") + ")");
    result.fact("provider_used", provider);
    result.fact("options_not_set", lost ? List.of("provider_options") : List.of());
    switch (plan.level) {
      case LATENCY -> Measure.latency(environment, plan, result);
      case LOAD -> Load.run(environment, plan, result);
      case CASES -> Measure.cases(environment, plan, result);
      default -> Train.run(environment, plan, result);
    }
    result.finish();
  }

  /** Say what went wrong as the last line and on standard error; return the exit code. */
  private static int tell(Throwable error, Result result) throws IOException {
    if (error instanceof Fault fault && fault.kind == Fault.Kind.SKIPPED) {
      say("skipped: " + error.getMessage());
      result.say("status", "skipped", "reason", error.getMessage());
      return SKIPPED;
    }
    boolean bad = error instanceof Fault
        || (error instanceof OrtException of && of.getCode() == OrtErrorCode.ORT_INVALID_ARGUMENT);
    String message = bad ? error.getMessage() : error.toString();
    say(message);
    result.say(
        "status", "failed", "cause", bad ? "bad-input" : cause(error), "message", message);
    return bad ? BAD_INPUT : CRASH;
  }

  private static String cause(Throwable error) {
    boolean outOfMemory = error instanceof OutOfMemoryError
        || String.valueOf(error.getMessage()).matches("(?s).*(bad_alloc|Failed to allocate).*");
    return error instanceof LinkageError
        ? "missing-dependency"
        : outOfMemory ? "out-of-memory" : "crash";
  }

  private static void say(String message) {
    System.err.println("java: " + String.valueOf(message).strip().replaceAll("\\s+", " "));
  }
}
