package transect.runner;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.TensorInfo;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

/** From the program's memory to ONNX Runtime's tensors and back. */
final class Tensors {
  /**
   * How a character beyond U+FFFF may come out of Java's binding: it reads "modified UTF-8", so
   * the four bytes become characters of their own, cut off where the string ends.
   */
  private static final Pattern GARBLED =
      Pattern.compile("[\\xF0-\\xF4](?:[\\x80-\\xBF]{3}|[\\x80-\\xBF]{0,2}\\z)");

  /** The most bytes that one buffer of Java holds here. */
  static final long LARGEST_BUFFER = Integer.MAX_VALUE - Long.BYTES * 8;

  private Tensors() {}

  /** Return the bytes of a tensor of numbers; -1 for more than any file holds. */
  static long bytes(long[] shape, Dtype dtype) {
    if (Arrays.stream(shape).anyMatch(size -> size == 0)) {
      return 0;
    }
    try {
      return Arrays.stream(shape).reduce(dtype.size, Math::multiplyExact);
    } catch (ArithmeticException error) {
      return -1;
    }
  }

  /**
   * Make a tensor over the value's memory; strings are copied.
   *
   * <p>Throws Unsupported for what Java's API cannot make.
   */
  static OnnxTensor over(OrtEnvironment environment, String name, Value value)
      throws OrtException {
    if (value instanceof Value.Numbers numbers) {
      if (numbers.dtype().made == null) {
        throw new Unsupported("input '" + name + "' is " + numbers.dtype().label
            + ": Java's API makes no such tensor");
      }
      return OnnxTensor.createTensor(
          environment, numbers.bytes(), numbers.shape(), numbers.dtype().made);
    }
    Value.Texts texts = (Value.Texts) value;
    for (String text : texts.texts()) {
      if (text.chars().anyMatch(c -> c == 0 || Character.isSurrogate((char) c))) {
        throw new Unsupported("input '" + name + "' has a string with a character that is NUL or "
            + "beyond U+FFFF: Java's binding hands these on wrongly");
      }
    }
    return texts.shape().length == 0
        ? OnnxTensor.createTensor(environment, texts.texts()[0])
        : OnnxTensor.createTensor(environment, texts.texts(), texts.shape());
  }

  /** Copy a value of ONNX Runtime out. Throws Unsupported for elements that Java cannot take. */
  static Value copy(String name, OnnxValue value) throws OrtException {
    if (value == null) {
      return new Value.Opaque("absent");
    }
    if (!(value instanceof OnnxTensor tensor)) {
      return new Value.Opaque(value.getInfo().toString());
    }
    TensorInfo info = tensor.getInfo();
    Dtype dtype = Dtype.of(info.onnxType);
    if (dtype == Dtype.STRING) {
      return new Value.Texts(info.getShape(), texts(name, tensor));
    }
    // An empty tensor may have no memory to look at.
    ByteBuffer bytes = info.getNumElements() == 0 ? ByteBuffer.allocate(0) : tensor.getByteBuffer();
    return new Value.Numbers(dtype, info.getShape(), bytes);
  }

  private static String[] texts(String name, OnnxTensor tensor) throws OrtException {
    List<String> found = new ArrayList<>();
    if (tensor.getInfo().getNumElements() > 0) {
      flatten(tensor.getValue(), found);
    }
    for (String text : found) {
      if (GARBLED.matcher(text).find()) {
        throw new Unsupported("output '" + name + "' has the string '" + text + "', which may stand "
            + "for a character beyond U+FFFF: Java's binding reads these wrongly");
      }
    }
    return found.toArray(String[]::new);
  }

  private static void flatten(Object value, List<String> into) {
    if (value instanceof Object[] array) {
      for (Object part : array) {
        flatten(part, into);
      }
    } else {
      into.add((String) value);
    }
  }

  /** Return type and shape for a message. */
  static String describe(Dtype dtype, long[] shape) {
    return dtype.label + Arrays.toString(shape);
  }

  /** Tell whether a shape is one that a model takes, -1 being any size. */
  static boolean fit(long[] taken, long[] given) {
    if (taken.length != given.length) {
      return false;
    }
    for (int axis = 0; axis < taken.length; axis++) {
      if (taken[axis] >= 0 && taken[axis] != given[axis]) {
        return false;
      }
    }
    return true;
  }
}
