package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Mode `load`: requests arrive when they arrive (an open loop). */
final class Load {
  /** A sleep may end late by this much; the rest of the time is waited through. */
  private static final long SLEEP_MARGIN_NS = 200_000;

  /** The latest arrival: twice this and the most seconds of `--max-seconds` fit into `long`. */
  private static final long LATEST_NS = 1L << 60;

  private final long[] arrivals;
  private final List<Map<String, Value>> batches;
  private final long limitNs;
  private final long[] start;
  private final long[] end;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicReference<Throwable> fault = new AtomicReference<>();
  private long zero;

  private Load(long[] arrivals, List<Map<String, Value>> batches, long maxNanoseconds) {
    this.arrivals = arrivals;
    this.batches = batches;
    limitNs = 2 * arrivals[arrivals.length - 1] + maxNanoseconds;
    start = new long[arrivals.length];
    end = new long[arrivals.length];
  }

  /** Serve the arrivals with some sessions at once; return the record's fields. */
  static Map<String, Object> run(Arguments arguments, Options options)
      throws OrtException, IOException, InterruptedException {
    long[] arrivals = readArrivals(arguments.path("arrivals"));
    Inputs inputs = new Inputs(arguments.path("inputs"));
    OrtEnvironment environment = Engine.environment(arguments.path("library"));
    List<Engine> engines = new ArrayList<>();
    try {
      for (int index = 0; index < arguments.sessions(); index++) {
        engines.add(
            new Engine(
                environment, arguments.path("model"), arguments.provider(), options, null));
      }
      Engine first = engines.get(0);
      Map<String, Object> record = Latency.facts(environment, first, arguments, options);
      record.putAll(Latency.allRows(first, inputs, arguments.path("outputs")));
      for (Engine engine : engines) {
        Latency.warmUp(engine, inputs.fullBatches, arguments.warmup());
      }
      Load load = new Load(arrivals, inputs.fullBatches, arguments.maxNanoseconds());
      System.gc();
      long collections = ProcessFacts.collections();
      int served = load.serve(engines);
      record.put("language_options",
          ProcessFacts.languageOptions(ProcessFacts.collections() - collections));
      record.put("sessions", engines.size());
      record.put("arrivals", arrivals.length);
      record.put("start_ns", Arrays.copyOf(load.start, served));
      record.put("end_ns", Arrays.copyOf(load.end, served));
      record.put("stop_reason", served == arrivals.length ? "all-served" : "time-limit");
      record.put("peak_memory_bytes", ProcessFacts.peakMemoryBytes());
      return record;
    } finally {
      for (Engine engine : engines) {
        engine.close();
      }
    }
  }

  private static long[] readArrivals(Path path) {
    byte[] raw;
    try {
      raw = Files.readAllBytes(path);
    } catch (IOException error) {
      throw new BadInput(path + ": cannot be read: " + error, error);
    }
    if (raw.length == 0 || raw.length % Long.BYTES != 0) {
      throw new BadInput(path + ": expected int64 arrival times, got " + raw.length + " bytes");
    }
    LongBuffer numbers = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
    long[] arrivals = new long[numbers.remaining()];
    numbers.get(arrivals);
    long before = 0;
    for (long arrival : arrivals) {
      if (arrival < before || arrival > LATEST_NS) {
        throw new BadInput(path + ": expected arrival times of 0 to 2^60 ns that do not fall, got "
            + arrival + " after " + before);
      }
      before = arrival;
    }
    return arrivals;
  }

  /** Serve with a thread per session; return how many requests were served. */
  private int serve(List<Engine> engines) throws OrtException, InterruptedException {
    List<Thread> workers = new ArrayList<>();
    for (Engine engine : engines) {
      workers.add(new Thread(() -> {
        try {
          work(engine);
        } catch (OrtException | RuntimeException | Error error) {
          fault.compareAndSet(null, error);
        }
      }));
    }
    zero = System.nanoTime();
    workers.forEach(Thread::start);
    for (Thread worker : workers) {
      worker.join();
    }
    if (fault.get() instanceof OrtException error) {
      throw error;
    } else if (fault.get() instanceof RuntimeException error) {
      throw error;
    } else if (fault.get() instanceof Error error) {
      throw error;
    }
    return Math.min(next.get(), arrivals.length);
  }

  /** Take requests until there is none, the time is up or a worker failed; serve what is taken. */
  private void work(Engine engine) throws OrtException {
    while (fault.get() == null && System.nanoTime() - zero < limitNs) {
      int index = next.getAndIncrement();
      if (index >= arrivals.length) {
        return;
      }
      awaitArrival(arrivals[index]);
      long begin = System.nanoTime() - zero;
      engine.step(batches.get(index % batches.size()));
      start[index] = begin;
      end[index] = System.nanoTime() - zero;
    }
  }

  private void awaitArrival(long arrival) {
    for (long left = arrival - (System.nanoTime() - zero); left > 0;
        left = arrival - (System.nanoTime() - zero)) {
      if (left > SLEEP_MARGIN_NS) {
        LockSupport.parkNanos(left - SLEEP_MARGIN_NS);
      } else {
        Thread.yield();
      }
    }
  }
}
