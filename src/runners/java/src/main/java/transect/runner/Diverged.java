package transect.runner;

import java.util.Map;

/** Training came to numbers that are not finite; exit code 1. */
final class Diverged extends Exception {
  private static final long serialVersionUID = 1L;

  /** Fields of the record, of the steps before. */
  final transient Map<String, Object> fields;

  Diverged(String message, Map<String, Object> fields) {
    super("diverged: " + message);
    this.fields = fields;
  }
}
