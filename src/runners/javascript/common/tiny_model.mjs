/** A model of one Identity node: what it takes to load ONNX Runtime before anything is timed. */

// ONNX IR 7, opset 13: y = Identity(x), float32[1].
const BASE64 =
  'CAcSADo3ChAKAXgSAXkiCElkZW50aXR5EgFnWg8KAXgSCgoICAESBAoCCAFiDwoBeRIKCggIARIECgIIAUIECgAQDQ==';

/** Its bytes, as protobuf. */
export const TINY_MODEL = Uint8Array.from(atob(BASE64), (letter) => letter.charCodeAt(0));
