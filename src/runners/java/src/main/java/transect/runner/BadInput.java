package transect.runner;

/** What was given cannot be used; exit code 2. */
final class BadInput extends RuntimeException {
  private static final long serialVersionUID = 1L;

  BadInput(String message) {
    super(message);
  }

  BadInput(String message, Throwable cause) {
    super(message, cause);
  }
}
