package transect.runner;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.TensorInfo.OnnxTensorType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What goes into a run or comes out of it, in host memory of the program's own.
 *
 * <p>`bytes`: numbers, row-major, little-endian; null for `texts`, of which numbers have none.
 */
record Tensor(int dtype, long[] shape, ByteBuffer bytes, String[] texts) {
  /** ONNX's numbers of some types. */
  static final int FLOAT32 = 1;

  static final int INT64 = 7;
  static final int STRING = 8;
  static final int FLOAT16 = 10;
  static final int FLOAT64 = 11;

  /** Java's names of ONNX's types, in the order of ONNX's numbers; null: none of the contract's. */
  private static final List<OnnxTensorType> TYPES =
      Stream.of("", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL",
              "FLOAT16", "DOUBLE", "UINT32", "UINT64", "", "", "BFLOAT16")
          .map(name -> name.isEmpty()
              ? null
              : OnnxTensorType.valueOf("ONNX_TENSOR_ELEMENT_DATA_TYPE_" + name))
          .toList();

  /** As which a tensor is made, likewise; null for what Java's API reads only. */
  private static final List<OnnxJavaType> MADE =
      Arrays.asList(null, OnnxJavaType.FLOAT, OnnxJavaType.UINT8, OnnxJavaType.INT8, null,
          OnnxJavaType.INT16, OnnxJavaType.INT32, OnnxJavaType.INT64, OnnxJavaType.STRING,
          OnnxJavaType.BOOL, OnnxJavaType.FLOAT16, OnnxJavaType.DOUBLE, null, null, null, null,
          OnnxJavaType.BFLOAT16);

  /**
   * How a character beyond U+FFFF may come out of Java's binding: it reads "modified UTF-8", so
   * the four bytes become characters of their own, cut off where the string ends.
   */
  private static final Pattern GARBLED =
      Pattern.compile("[\\xF0-\\xF4](?:[\\x80-\\xBF]{3}|[\\x80-\\xBF]{0,2}\\z)");

  /** Return an entry's tensor. Throws Fault for texts that Java's binding hands on wrongly. */
  static Tensor of(Plan.Entry entry) {
    ByteBuffer data = Plan.data(entry);
    if (entry.dtype() != STRING) {
      return new Tensor(entry.dtype(), entry.shape(), data, null);
    }
    List<String> texts = new ArrayList<>();
    while (data.hasRemaining()) {
      byte[] raw = new byte[data.getInt()];
      data.get(raw);
      texts.add(new String(raw, StandardCharsets.UTF_8));
    }
    for (String text : texts) {
      if (text.chars().anyMatch(c -> c == 0 || Character.isSurrogate((char) c))) {
        throw Fault.unsupported("input '" + entry.name() + "' has a string with a character that "
            + "is NUL or beyond U+FFFF: Java's binding hands these on wrongly");
      }
    }
    return new Tensor(STRING, entry.shape(), null, texts.toArray(String[]::new));
  }

  /** Return some rows; numbers stay where they are. */
  Tensor rows(int first, int count) {
    int each = (texts == null ? bytes.capacity() : texts.length) / (int) shape[0];
    long[] sizes = shape.clone();
    sizes[0] = count;
    return texts == null
        ? new Tensor(dtype, sizes, slice(bytes, first * each, count * each), null)
        : new Tensor(dtype, sizes, null,
            Arrays.copyOfRange(texts, first * each, (first + count) * each));
  }

  private static ByteBuffer slice(ByteBuffer from, int at, int size) {
    return from.slice(at, size).order(ByteOrder.nativeOrder());
  }

  /** Make a tensor over this memory; strings are copied. Throws Fault for what Java cannot make. */
  OnnxTensor over(OrtEnvironment environment, String name) throws OrtException {
    if (texts == null) {
      return OnnxTensor.createTensor(environment, bytes, shape, made(name, dtype));
    }
    return shape.length == 0
        ? OnnxTensor.createTensor(environment, texts[0])
        : OnnxTensor.createTensor(environment, texts, shape);
  }

  /** Return Java's word for a type. Throws Fault for one that its API reads, but does not make. */
  static OnnxJavaType made(String name, int dtype) {
    OnnxJavaType type = MADE.get(dtype);
    if (type == null) {
      throw Fault.unsupported("'" + name + "' is " + TYPES.get(dtype)
          + ": Java's API makes no such tensor");
    }
    return type;
  }

  /** Copy a value of ONNX Runtime out; null for what is no tensor. Throws Fault for elements. */
  static Tensor copy(String name, OnnxValue value) throws OrtException {
    if (!(value instanceof OnnxTensor tensor)) {
      return null;
    }
    TensorInfo info = tensor.getInfo();
    int dtype = TYPES.indexOf(info.onnxType);
    if (dtype < 0) {
      throw Fault.unsupported("output '" + name + "' is " + info.onnxType
          + ": Java's API cannot take its elements");
    }
    if (dtype == STRING) {
      return new Tensor(dtype, info.getShape(), null, texts(name, tensor));
    }
    // An empty tensor may have no memory to look at.
    ByteBuffer bytes = info.getNumElements() == 0 ? ByteBuffer.allocate(0) : tensor.getByteBuffer();
    return new Tensor(dtype, info.getShape(), bytes, null);
  }

  private static String[] texts(String name, OnnxTensor tensor) throws OrtException {
    List<String> found = new ArrayList<>();
    if (tensor.getInfo().getNumElements() > 0) {
      flatten(tensor.getValue(), found);
    }
    for (String text : found) {
      if (GARBLED.matcher(text).find()) {
        throw Fault.unsupported("output '" + name + "' has the string '" + text
            + "', which may stand for a character beyond U+FFFF: Java's binding reads these "
            + "wrongly");
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
}
