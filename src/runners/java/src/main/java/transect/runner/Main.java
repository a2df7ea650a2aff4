package transect.runner;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtException.OrtErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;

/** ONNX Runtime from Java, under the runner contract (docs/runner-contract.md). */
public final class Main {
  private static final String NAME = "java";
  private static final int CRASH = 1;
  private static final int BAD_INPUT = 2;
  private static final int SKIPPED = 3;

  private Main() {}

  /** Run, write the record, end with the contract's exit code. */
  public static void main(String[] arguments) {
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("runner", NAME);
    int code;
    try {
      code = work(new Arguments(arguments), record);
    } catch (Throwable error) {
      code = tell(error, record);
    }
    try {
      Path file = Arguments.record(arguments);
      // Of cases the record is what came of each: a fault is told by exit code and message.
      if (file != null && !"cases".equals(record.get("mode"))) {
        write(file.toAbsolutePath(), record);
      }
    } catch (IOException | BadInput error) {
      say("--record cannot be written: " + error);
      // What went wrong before says more.
      code = code == 0 ? CRASH : code;
    }
    System.exit(code);
  }

  private static int work(Arguments arguments, Map<String, Object> record)
      throws OrtException, IOException, InterruptedException, Diverged {
    record.put("mode", arguments.mode());
    record.put("provider_requested", arguments.provider());
    Options options = new Options(arguments.path("options"));
    if (arguments.provider().equals("cuda")) {
      if (CudaDriver.devices() == 0) {
        throw new Skipped("no CUDA device");
      }
    } else if (!arguments.provider().equals("cpu")) {
      throw new BadInput("--provider " + arguments.provider() + ": expected one of cpu, cuda");
    }
    switch (arguments.mode()) {
      case "latency" -> record.putAll(Latency.run(arguments, options));
      case "load" -> record.putAll(Load.run(arguments, options));
      case "train" -> record.putAll(Train.run(arguments, options));
      default -> Cases.run(arguments, options);
    }
    record.put("status", "ok");
    record.putAll(ProcessFacts.all());
    return 0;
  }

  /** Put what went wrong into the record and on standard error; return the exit code. */
  private static int tell(Throwable error, Map<String, Object> record) {
    if (error instanceof Skipped) {
      record.put("status", "skipped");
      record.put("reason", error.getMessage());
      say("skipped: " + error.getMessage());
      return SKIPPED;
    }
    boolean bad = isBadInput(error);
    boolean diverged = error instanceof Diverged;
    String message = bad || diverged ? error.getMessage() : error.toString();
    if (error instanceof Diverged end) {
      record.putAll(end.fields);
    }
    record.put("status", "failed");
    record.put("cause", diverged ? "diverged" : bad ? "bad-input" : cause(error));
    record.put("message", message);
    say(message);
    return bad ? BAD_INPUT : CRASH;
  }

  private static boolean isBadInput(Throwable error) {
    return error instanceof BadInput
        || error instanceof Unsupported
        || (error instanceof OrtException of
            && of.getCode() == OrtErrorCode.ORT_INVALID_ARGUMENT);
  }

  private static String cause(Throwable error) {
    boolean outOfMemory = error instanceof OutOfMemoryError
        || String.valueOf(error.getMessage()).matches("(?s).*(bad_alloc|Failed to allocate).*");
    return error instanceof LinkageError
        ? "missing-dependency"
        : outOfMemory ? "out-of-memory" : "crash";
  }

  private static void say(String message) {
    System.err.println(NAME + ": " + String.valueOf(message).strip().replaceAll("\\s+", " "));
  }

  /** Write a whole record or none. */
  private static void write(Path file, Map<String, Object> record) throws IOException {
    Files.createDirectories(file.getParent());
    Path temporary =
        file.resolveSibling("." + file.getFileName() + "." + ProcessHandle.current().pid());
    try {
      Files.writeString(temporary, Json.text(record) + "\n");
      Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(temporary);
    }
  }
}
