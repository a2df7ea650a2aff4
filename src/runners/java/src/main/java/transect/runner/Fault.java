package transect.runner;

/** An end that is told apart from a crash. */
final class Fault extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** `UNSUPPORTED`: a value that Java cannot give or take; a case's verdict, else bad input. */
  enum Kind { BAD_INPUT, UNSUPPORTED, SKIPPED }

  final Kind kind;

  private Fault(Kind kind, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
  }

  static Fault badInput(String message, Throwable cause) {
    return new Fault(Kind.BAD_INPUT, message, cause);
  }

  static Fault unsupported(String message) {
    return new Fault(Kind.UNSUPPORTED, message, null);
  }

  static Fault skipped(String reason) {
    return new Fault(Kind.SKIPPED, reason, null);
  }
}
