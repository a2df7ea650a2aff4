package transect.runner;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.TensorInfo.OnnxTensorType;
import java.util.Arrays;
import java.util.stream.Collectors;

/** The contract's types of tensors, and ONNX Runtime's in Java. */
enum Dtype {
  FLOAT32("float32", 4, OnnxJavaType.FLOAT, "FLOAT"),
  FLOAT64("float64", 8, OnnxJavaType.DOUBLE, "DOUBLE"),
  FLOAT16("float16", 2, OnnxJavaType.FLOAT16, "FLOAT16"),
  BFLOAT16("bfloat16", 2, OnnxJavaType.BFLOAT16, "BFLOAT16"),
  INT8("int8", 1, OnnxJavaType.INT8, "INT8"),
  INT16("int16", 2, OnnxJavaType.INT16, "INT16"),
  INT32("int32", 4, OnnxJavaType.INT32, "INT32"),
  INT64("int64", 8, OnnxJavaType.INT64, "INT64"),
  UINT8("uint8", 1, OnnxJavaType.UINT8, "UINT8"),
  // Java's API reads these three, but makes none.
  UINT16("uint16", 2, null, "UINT16"),
  UINT32("uint32", 4, null, "UINT32"),
  UINT64("uint64", 8, null, "UINT64"),
  BOOL("bool", 1, OnnxJavaType.BOOL, "BOOL"),
  STRING("string", 0, OnnxJavaType.STRING, "STRING");

  final String label;

  /** Bytes of an element; 0 for strings. */
  final int size;

  /** As which a tensor is made; null where Java cannot. */
  final OnnxJavaType made;

  final OnnxTensorType onnx;

  Dtype(String label, int size, OnnxJavaType made, String onnx) {
    this.label = label;
    this.size = size;
    this.made = made;
    this.onnx = OnnxTensorType.valueOf("ONNX_TENSOR_ELEMENT_DATA_TYPE_" + onnx);
  }

  /** Return the type of that name, or null. */
  static Dtype of(String label) {
    return Arrays.stream(values()).filter(d -> d.label.equals(label)).findFirst().orElse(null);
  }

  /** Throws Unsupported for a type that the contract does not have, such as complex numbers. */
  static Dtype of(OnnxTensorType onnx) {
    for (Dtype dtype : values()) {
      if (dtype.onnx == onnx) {
        return dtype;
      }
    }
    throw new Unsupported("a tensor of " + onnx + ": Java's API cannot take its elements");
  }

  static String labels() {
    return Arrays.stream(values()).map(d -> d.label).collect(Collectors.joining(", "));
  }
}
