package transect.runner;

/** A value that Java's API of ONNX Runtime cannot give or take: a case's verdict, else bad input. */
final class Unsupported extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Unsupported(String message) {
    super(message);
  }
}
