package main

import (
	"encoding/binary"
	"strings"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// dtype is one of the contract's element types.
type dtype struct {
	name string
	// Bytes of an element; of a string those of its length.
	size int
	// ONNX's number of the type (TensorProto.DataType), which ONNX Runtime uses too.
	onnx int
	// over makes a tensor over memory; not of strings.
	over func(shape ort.Shape, memory []byte) (ort.Value, error)
	// bytes returns the memory of a value of this type, or false for another type.
	bytes func(value ort.Value) ([]byte, bool)
}

const onnxString = 8

var dtypes = []*dtype{
	numbers[float32]("float32", 1), numbers[float64]("float64", 11),
	bits("float16", 10), bits("bfloat16", 16),
	numbers[int8]("int8", 3), numbers[int16]("int16", 5),
	numbers[int32]("int32", 6), numbers[int64]("int64", 7),
	numbers[uint8]("uint8", 2), numbers[uint16]("uint16", 4),
	numbers[uint32]("uint32", 12), numbers[uint64]("uint64", 13),
	numbers[bool]("bool", 9),
	{name: "string", size: 4, onnx: onnxString,
		bytes: func(ort.Value) ([]byte, bool) { return nil, false }},
}

// numbers is a type that the binding has tensors of.
func numbers[T ort.TensorData](name string, onnx int) *dtype {
	var element T
	return &dtype{
		name: name, size: int(unsafe.Sizeof(element)), onnx: onnx,
		over: func(shape ort.Shape, memory []byte) (ort.Value, error) {
			// The binding's tensors have an axis; what has none is another type, which copies.
			if len(shape) == 0 {
				return ort.NewScalar(view[T](memory)[0])
			}
			return ort.NewTensor(shape, view[T](memory))
		},
		bytes: func(value ort.Value) ([]byte, bool) {
			switch value := value.(type) {
			case *ort.Tensor[T]:
				return memoryOf(value.GetData()), true
			case *ort.Scalar[T]:
				return memoryOf([]T{value.GetData()}), true
			}
			return nil, false
		},
	}
}

// bits is a type that Go does not have, whose tensors the binding makes over bytes.
func bits(name string, onnx int) *dtype {
	return &dtype{
		name: name, size: 2, onnx: onnx,
		over: func(shape ort.Shape, memory []byte) (ort.Value, error) {
			if len(shape) == 0 {
				return nil, unsupported("onnxruntime_go has no scalars of type %s", name)
			}
			if len(memory) == 0 {
				// It wants a byte where there is no element.
				memory = make([]byte, 1)
			}
			return ort.NewCustomDataTensor(shape, memory, ort.TensorElementDataType(onnx))
		},
		bytes: func(value ort.Value) ([]byte, bool) {
			custom, ok := value.(*ort.CustomDataTensor)
			if !ok || int(custom.DataType()) != onnx {
				return nil, false
			}
			return custom.GetData()[:2*custom.GetShape().FlattenedSize()], true
		},
	}
}

func dtypeNamed(name string) *dtype {
	for _, known := range dtypes {
		if known.name == name {
			return known
		}
	}
	return nil
}

func dtypeOf(onnx int) *dtype {
	for _, known := range dtypes {
		if known.onnx == onnx {
			return known
		}
	}
	return nil
}

func dtypeNames() string {
	names := make([]string, len(dtypes))
	for i, known := range dtypes {
		names[i] = known.name
	}
	return strings.Join(names, ", ")
}

// room returns zeroed memory that is aligned for every element type.
func room(size int) []byte {
	words := make([]uint64, max(1, (size+7)/8))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
}

func view[T any](memory []byte) []T {
	var element T
	first := (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
	return unsafe.Slice(first, len(memory)/int(unsafe.Sizeof(element)))
}

func memoryOf[T any](data []T) []byte {
	var element T
	first := (*byte)(unsafe.Pointer(unsafe.SliceData(data)))
	return unsafe.Slice(first, len(data)*int(unsafe.Sizeof(element)))
}

// isLittleEndian: tensors are handed on as the little-endian bytes of their files.
var isLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf returns type and memory of a value, strings each after its length; nil: no tensor.
func bytesOf(value ort.Value) (*dtype, []byte, error) {
	if texts, ok := value.(*ort.StringTensor); ok {
		contents, err := stringsOf(texts)
		if err != nil {
			return nil, nil, crash(err)
		}
		var memory []byte
		for _, text := range contents {
			memory = binary.LittleEndian.AppendUint32(memory, uint32(len(text)))
			memory = append(memory, text...)
		}
		return dtypeOf(onnxString), memory, nil
	}
	for _, known := range dtypes {
		if memory, ok := known.bytes(value); ok {
			return known, memory, nil
		}
	}
	if value.GetONNXType() == ort.ONNXTypeTensor {
		return nil, nil, unsupported("an output is of type %v", ort.TensorElementDataType(value.DataType()))
	}
	return nil, nil, nil
}

// stringsOf copies the strings; of a scalar the binding cannot take all at once.
func stringsOf(texts *ort.StringTensor) ([]string, error) {
	if len(texts.GetShape()) > 0 {
		return texts.GetContents()
	}
	text, err := texts.GetElement(0)
	return []string{text}, err
}
