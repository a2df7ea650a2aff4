package transect.runner;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Level `load`: requests arrive when they arrive (an open loop). */
final class Load {
  /** A sleep may end late by this much; the rest of the time is waited through. */
  private static final long SLEEP_MARGIN_NS = 200_000;

  private final long[] arrivals;
  private final List<Map<String, Tensor>> batches;
  private final long lastBeginNs;

  /** Start and end of each request, in nanoseconds. */
  private final long[] times;

  private final AtomicInteger next = new AtomicInteger();
  private final AtomicReference<Throwable> fault = new AtomicReference<>();
  private long zero;

  private Load(long[] arrivals, List<Map<String, Tensor>> batches, long lastBeginNs) {
    this.arrivals = arrivals;
    this.batches = batches;
    this.lastBeginNs = lastBeginNs;
    times = new long[2 * arrivals.length];
  }

  /** Serve the arrivals with some sessions at once. */
  static void run(OrtEnvironment environment, Plan plan, Result result)
      throws OrtException, IOException, InterruptedException {
    long[] arrivals = plan.longs(Plan.Role.ARRIVALS);
    List<Session> sessions = new ArrayList<>();
    try {
      for (int index = 0; index < plan.sessions; index++) {
        sessions.add(new Session(environment, plan, plan.text(Plan.Role.MODEL), null));
      }
      List<Map<String, Tensor>> full =
          plan.full(Measure.allRows(sessions.get(0), plan, result));
      for (Session session : sessions) {
        Measure.warmUp(session, full, plan.warmup);
      }
      Load load = new Load(arrivals, full, plan.lastBeginNs);
      System.gc();
      long collections = Measure.collections();
      int served = load.serve(sessions);
      result.process();
      result.numbers("times.bin", Arrays.copyOf(load.times, 2 * served));
      result.fact(
          "language_options", Measure.languageOptions(Measure.collections() - collections));
      result.fact("stop_reason", served == arrivals.length ? "all-served" : "time-limit");
    } finally {
      for (Session session : sessions) {
        session.close();
      }
    }
  }

  /** Serve with a thread per session; return how many requests were served. */
  private int serve(List<Session> sessions) throws OrtException, InterruptedException {
    List<Thread> workers = new ArrayList<>();
    for (Session session : sessions) {
      workers.add(new Thread(() -> {
        try {
          work(session);
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
  private void work(Session session) throws OrtException {
    while (fault.get() == null && System.nanoTime() - zero < lastBeginNs) {
      int index = next.getAndIncrement();
      if (index >= arrivals.length) {
        return;
      }
      awaitArrival(arrivals[index]);
      long begin = System.nanoTime() - zero;
      session.step(batches.get(index % batches.size()));
      times[2 * index] = begin;
      times[2 * index + 1] = System.nanoTime() - zero;
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
