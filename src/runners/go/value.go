package main

import (
	"encoding/binary"
	"strings"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// dtype is a type that the binding has tensors of, over memory of Go's.
type dtype struct {
	// Bytes of an element.
	size int
	// The binding has no outputs of it but those that it is given.
	isOdd bool
	// over makes a tensor over memory.
	over func(shape ort.Shape, memory []byte) (ort.Value, error)
	// bytes returns the memory of a value of this type.
	bytes func(value ort.Value) []byte
}

// By ONNX's number (TensorProto.DataType), which ONNX Runtime uses too; numbers alone.
var dtypes = map[int32]*dtype{
	1: numbers[float32](), 11: numbers[float64](),
	10: bits(10, "float16"), 16: bits(16, "bfloat16"),
	3: numbers[int8](), 5: numbers[int16](), 6: numbers[int32](), 7: numbers[int64](),
	2: numbers[uint8](), 4: numbers[uint16](), 12: numbers[uint32](), 13: numbers[uint64](),
	9: numbers[bool](),
}

const stringNumber = 8

// numbers is a type that Go has.
func numbers[T ort.TensorData]() *dtype {
	var element T
	return &dtype{
		size: int(unsafe.Sizeof(element)),
		over: func(shape ort.Shape, memory []byte) (ort.Value, error) {
			// The binding's tensors have an axis; what has none is another type, which copies.
			if len(shape) == 0 {
				return ort.NewScalar(view[T](memory)[0])
			}
			return ort.NewTensor(shape, view[T](memory))
		},
		bytes: func(value ort.Value) []byte {
			if scalar, ok := value.(*ort.Scalar[T]); ok {
				return memoryOf([]T{scalar.GetData()})
			}
			return memoryOf(value.(*ort.Tensor[T]).GetData())
		},
	}
}

// bits is a type that Go does not have, whose tensors the binding makes over bytes.
func bits(number int, name string) *dtype {
	return &dtype{
		size: 2, isOdd: true,
		over: func(shape ort.Shape, memory []byte) (ort.Value, error) {
			if len(shape) == 0 {
				return nil, unsupported("onnxruntime_go has no scalars of type %s", name)
			}
			if len(memory) == 0 {
				// It wants a byte where there is no element.
				memory = make([]byte, 1)
			}
			return ort.NewCustomDataTensor(shape, memory, ort.TensorElementDataType(number))
		},
		bytes: func(value ort.Value) []byte {
			custom := value.(*ort.CustomDataTensor)
			return custom.GetData()[:2*custom.GetShape().FlattenedSize()]
		},
	}
}

// room makes a tensor over zeroed memory of its own.
func (d *dtype) room(shape ort.Shape) ort.Value {
	return must(d.over(shape, room(d.size*elements(shape))))
}

func elements(shape []int64) int {
	count := 1
	for _, axis := range shape {
		count *= int(axis)
	}
	return count
}

// room returns zeroed memory that is aligned for every element type.
func room(size int) []byte { return memoryOf(make([]uint64, max(1, (size+7)/8)))[:size] }

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

// bytesOf returns the memory of a tensor, strings each after its length.
func bytesOf(value ort.Value) []byte {
	if texts, ok := value.(*ort.StringTensor); ok {
		var memory []byte
		for _, text := range stringsOf(texts) {
			memory = binary.LittleEndian.AppendUint32(memory, uint32(len(text)))
			memory = append(memory, text...)
		}
		return memory
	}
	known := dtypes[int32(value.DataType())]
	if known == nil {
		panic(unsupported("an output is of type %v", ort.TensorElementDataType(value.DataType())))
	}
	return known.bytes(value)
}

// stringsOf copies the strings; of a scalar the binding cannot take all at once.
func stringsOf(texts *ort.StringTensor) []string {
	if len(texts.GetShape()) > 0 {
		return must(texts.GetContents())
	}
	return []string{must(texts.GetElement(0))}
}

// tensor is an input, or rows of one, in the program's own memory.
type tensor struct {
	// Nil: of strings.
	dtype  *dtype
	shape  ort.Shape
	memory []byte
	texts  []string
}

// tensor takes the entry's data.
func (e *entry) tensor() tensor {
	raw := e.data()
	if e.Dtype != stringNumber {
		return tensor{dtype: dtypes[e.Dtype], shape: e.shape, memory: raw}
	}
	if len(e.shape) == 0 {
		panic(unsupported("input '%s': onnxruntime_go has no scalars of strings", e.name))
	}
	texts := make([]string, elements(e.shape))
	for i := range texts {
		end := 4 + binary.LittleEndian.Uint32(raw)
		texts[i], raw = string(raw[4:end]), raw[end:]
		if strings.IndexByte(texts[i], 0) >= 0 {
			panic(unsupported("input '%s': onnxruntime_go ends a string at a zero", e.name))
		}
	}
	return tensor{shape: e.shape, texts: texts}
}

// cut returns some rows, over the same memory.
func (t *tensor) cut(start, end int) tensor {
	rows, width := *t, elements(t.shape[1:])
	rows.shape = t.shape.Clone()
	rows.shape[0] = int64(end - start)
	if t.dtype == nil {
		rows.texts = t.texts[start*width : end*width]
	} else {
		width *= t.dtype.size
		rows.memory = t.memory[start*width : end*width]
	}
	return rows
}

// bind makes a value over the memory; strings are ONNX Runtime's own copies.
func (t *tensor) bind() ort.Value {
	if t.dtype != nil {
		return must(t.dtype.over(t.shape, t.memory))
	}
	value := must(ort.NewStringTensor(t.shape))
	check(value.SetContents(t.texts))
	return value
}
