package transect.runner;

/** A tensor of a step's state; `next` is the output that holds its next value, or null. */
record StateTensor(String name, String role, Dtype dtype, long[] shape, String next) {
  /** Return how many bytes it takes; -1 for more than any file holds. */
  long bytes() {
    return Tensors.bytes(shape, dtype);
  }
}
