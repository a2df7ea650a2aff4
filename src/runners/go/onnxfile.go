package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// field is one of a protobuf message; bytes of what has a length, else number.
type field struct {
	number uint64
	bytes  []byte
}

var errNoMessage = errors.New("a field ends beyond its message")

// message calls take for each field of a protobuf message, in order.
func message(raw []byte, take func(id int, of field) error) error {
	number := func() (uint64, error) {
		value, length := binary.Uvarint(raw)
		if length <= 0 {
			return 0, errNoMessage
		}
		raw = raw[length:]
		return value, nil
	}
	for len(raw) > 0 {
		tag, err := number()
		if err != nil {
			return err
		}
		var of field
		length := uint64(0)
		switch tag & 7 {
		case 0:
			of.number, err = number()
		case 1:
			length = 8
		case 2:
			length, err = number()
		case 5:
			length = 4
		default:
			err = fmt.Errorf("a field has wire type %d", tag&7)
		}
		if err != nil {
			return err
		}
		if length > uint64(len(raw)) {
			return errNoMessage
		}
		of.bytes, raw = raw[:length], raw[length:]
		if err := take(int(tag>>3), of); err != nil {
			return err
		}
	}
	return nil
}

// readModel reads the ends of an ONNX file, whose weights it skips.
func readModel(path string) (*model, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	defer file.Close()
	facts, err := file.Stat()
	if err != nil || facts.Size() == 0 {
		return nil, bad("%s: expected an ONNX model, got %d bytes", path, facts.Size())
	}
	raw, err := syscall.Mmap(
		int(file.Fd()), 0, int(facts.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	defer syscall.Munmap(raw)
	found := &model{defaults: map[string]bool{}}
	hasGraph := false
	err = message(raw, func(id int, of field) error {
		if id != 7 {
			return nil
		}
		hasGraph = true
		return message(of.bytes, found.takeOfGraph)
	})
	if err == nil && !hasGraph {
		err = errors.New("it has no graph")
	}
	if err != nil {
		return nil, bad("%s: expected an ONNX model: %v", path, err)
	}
	return found, nil
}

// takeOfGraph reads a field of a GraphProto.
func (m *model) takeOfGraph(id int, of field) error {
	switch id {
	case 5:
		return m.takeDefault(of.bytes)
	case 15:
		// A sparse one has its name at its values.
		return message(of.bytes, func(id int, of field) error {
			if id == 1 {
				return m.takeDefault(of.bytes)
			}
			return nil
		})
	case 11:
		one, err := readEnd(of.bytes)
		m.inputs = append(m.inputs, one)
		return err
	case 12:
		one, err := readEnd(of.bytes)
		m.outputs = append(m.outputs, one)
		return err
	}
	return nil
}

// takeDefault notes the name of a TensorProto.
func (m *model) takeDefault(raw []byte) error {
	return message(raw, func(id int, of field) error {
		if id == 8 {
			m.defaults[string(of.bytes)] = true
		}
		return nil
	})
}

// readEnd reads a ValueInfoProto.
func readEnd(raw []byte) (end, error) {
	var one end
	err := message(raw, func(id int, of field) error {
		switch id {
		case 1:
			one.name = string(of.bytes)
		case 2:
			return one.takeType(of.bytes)
		}
		return nil
	})
	return one, err
}

// takeType reads a TypeProto.
func (e *end) takeType(raw []byte) error {
	return message(raw, func(id int, of field) error {
		switch id {
		case 1, 8:
			if err := message(of.bytes, e.takeOfTensor); err != nil {
				return err
			}
			e.kind = fmt.Sprintf("tensor(%s)", elementName(e.element))
		case 4, 9:
			e.optional = id == 9
			inner, err := inside(of.bytes)
			e.kind = map[int]string{4: "sequence", 9: "optional"}[id] + "(" + inner + ")"
			return err
		case 5:
			return e.takeMap(of.bytes)
		}
		return nil
	})
}

// takeMap reads a TypeProto.Map; its values are tensors in the format, and scalars in fact.
func (e *end) takeMap(raw []byte) error {
	var key int
	var value end
	err := message(raw, func(id int, of field) error {
		if id == 1 {
			key = int(of.number)
		} else if id == 2 {
			return value.takeType(of.bytes)
		}
		return nil
	})
	e.kind = fmt.Sprintf("map(%s,%s)", elementName(key), elementName(value.element))
	return err
}

// inside returns the kind of the TypeProto in the first field of a message.
func inside(raw []byte) (string, error) {
	var inner end
	err := message(raw, func(id int, of field) error {
		if id == 1 {
			return inner.takeType(of.bytes)
		}
		return nil
	})
	return inner.kind, err
}

// takeOfTensor reads a field of a TypeProto.Tensor.
func (e *end) takeOfTensor(id int, of field) error {
	if id == 1 {
		e.element = int(of.number)
	}
	if id != 2 {
		return nil
	}
	e.hasShape = true
	return message(of.bytes, func(id int, of field) error {
		if id != 1 {
			return nil
		}
		var one axis
		err := message(of.bytes, func(id int, of field) error {
			if id == 1 {
				one.size, one.isSize = int64(of.number), int64(of.number) >= 0
			} else if id == 2 {
				one.name = string(of.bytes)
			}
			return nil
		})
		e.axes = append(e.axes, one)
		return err
	})
}
