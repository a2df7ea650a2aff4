package transect.runner;

import java.util.Arrays;

/** The times of a measurement's iterations, and when there are enough of them. */
final class Series {
  private static final double INTERVAL_WIDTH = 0.02;

  /** Half of the 97.5 % quantile of the normal distribution. */
  private static final double HALF_Z = 0.98;

  private long[] bind;
  private long[] run;
  private long[] copy;
  private int count;

  Series(int expected) {
    bind = new long[expected];
    run = new long[expected];
    copy = new long[expected];
  }

  void add(Engine engine) {
    if (count == run.length) {
      bind = Arrays.copyOf(bind, 2 * count);
      run = Arrays.copyOf(run, 2 * count);
      copy = Arrays.copyOf(copy, 2 * count);
    }
    bind[count] = engine.bindNs;
    run[count] = engine.runNs;
    copy[count] = engine.copyNs;
    count++;
  }

  int count() {
    return count;
  }

  long[] bind() {
    return Arrays.copyOf(bind, count);
  }

  long[] run() {
    return Arrays.copyOf(run, count);
  }

  long[] copy() {
    return Arrays.copyOf(copy, count);
  }

  /**
   * Tell whether the 95 % interval of the median run time is at most 2 % of the median wide.
   *
   * <p>Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
   * Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
   */
  boolean intervalIsNarrow() {
    double half = HALF_Z * Math.sqrt(count);
    long low = (long) Math.floor(0.5 * count - half);
    long high = (long) Math.ceil(0.5 * count + 1 + half);
    if (low < 1 || high > count) {
      return false;
    }
    long[] ordered = run();
    Arrays.sort(ordered);
    double median = 0.5 * (ordered[(count - 1) / 2] + ordered[count / 2]);
    return ordered[(int) high - 1] - ordered[(int) low - 1] <= INTERVAL_WIDTH * median;
  }
}
