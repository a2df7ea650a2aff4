package transect.runner;

/** The provider is not there; exit code 3. Never answered by falling back. */
final class Skipped extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Skipped(String reason) {
    super(reason);
  }
}
