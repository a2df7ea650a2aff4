package transect.runner;

import java.nio.file.Files;
import java.nio.file.Path;

/** Loads ONNX Runtime's shared library that `--library` names, and Java's binding to it. */
final class NativeLibrary {
  /** Set by the launcher: where `libonnxruntime4j_jni.so` lies, unpacked from ONNX Runtime's jar. */
  private static final String BINDING = "transect.binding";

  private NativeLibrary() {}

  /**
   * Load both, so that ONNX Runtime's own loader takes none from its jar.
   *
   * <p>Throws BadInput when there is no such file, UnsatisfiedLinkError when it cannot be loaded.
   */
  static void load(Path library) {
    if (library == null) {
      throw new BadInput("--library is needed: ONNX Runtime's shared library");
    }
    if (!Files.isRegularFile(library)) {
      throw new BadInput("--library " + library + ": no such file");
    }
    String binding = System.getProperty(BINDING);
    if (binding == null) {
      throw new UnsatisfiedLinkError("property " + BINDING + " names no file: start the launcher");
    }
    Path file = library.toAbsolutePath();
    // The binding needs libonnxruntime.so.1 by that name, and finds the one that is loaded.
    System.load(file.toString());
    System.load(binding);
    System.setProperty("onnxruntime.native.onnxruntime.skip", "true");
    System.setProperty("onnxruntime.native.onnxruntime4j_jni.skip", "true");
    // Where libonnxruntime_providers_cuda.so lies.
    System.setProperty("onnxruntime.native.path", file.getParent().toString());
  }
}
