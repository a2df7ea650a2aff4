package plan

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"syscall"

	"transect-trainer-go/fault"
)

// Array says where numbers are.
type Array struct {
	Dtype  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

var sizes = map[string]int{"float64": 8, "float32": 4, "int64": 8, "int32": 4, "uint8": 1}

// Count is the number of numbers.
func (a *Array) Count() int { return product(a.Shape) }

// Row is the number of numbers in one entry of the first axis.
func (a *Array) Row() int { return product(a.Shape[1:]) }

func product(shape []int) int {
	count := 1
	for _, length := range shape {
		count *= length
	}
	return count
}

// Bytes returns the array as it lies in its file, mapped: what is not looked at is not read.
func (a *Array) Bytes() ([]byte, error) {
	size, known := sizes[a.Dtype]
	if !known {
		return nil, fault.Bad("%s: arrays of %q are not known", a.File, a.Dtype)
	}
	for _, length := range a.Shape {
		if length < 0 {
			return nil, fault.Bad("%s: an array has shape %v", a.File, a.Shape)
		}
	}
	file, err := os.Open(a.File)
	if err != nil {
		return nil, fault.Bad("an array's file cannot be read: %v", err)
	}
	defer file.Close()
	facts, err := file.Stat()
	if err != nil {
		return nil, fault.Bad("%s: %v", a.File, err)
	}
	bytes := int64(a.Count()) * int64(size)
	if a.Offset < 0 || facts.Size() < a.Offset+bytes {
		return nil, fault.Bad("%s: %d bytes hold no %s %v at %d", a.File, facts.Size(), a.Dtype, a.Shape, a.Offset)
	}
	if bytes == 0 {
		return nil, nil
	}
	// A mapping begins at a page.
	page := int64(os.Getpagesize())
	begin := a.Offset / page * page
	whole, err := syscall.Mmap(int(file.Fd()), begin, int(a.Offset-begin+bytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fault.New(fault.OutOfMemory, "%s cannot be mapped: %v", a.File, err)
	}
	return whole[a.Offset-begin:], nil
}

// Floats returns the numbers in float64.
func (a *Array) Floats() ([]float64, error) {
	bytes, err := a.Bytes()
	if err != nil {
		return nil, err
	}
	numbers := make([]float64, a.Count())
	switch a.Dtype {
	case "float64":
		for i := range numbers {
			numbers[i] = math.Float64frombits(binary.LittleEndian.Uint64(bytes[8*i:]))
		}
	case "float32":
		for i := range numbers {
			numbers[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
	default:
		return nil, fault.Bad("%s: expected float64 or float32, not %s %v", a.File, a.Dtype, a.Shape)
	}
	return numbers, nil
}

// Integers returns the numbers in int64.
func (a *Array) Integers() ([]int64, error) {
	bytes, err := a.Bytes()
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, a.Count())
	switch a.Dtype {
	case "int64":
		for i := range numbers {
			numbers[i] = int64(binary.LittleEndian.Uint64(bytes[8*i:]))
		}
	case "int32":
		for i := range numbers {
			numbers[i] = int64(int32(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
	case "uint8":
		for i := range numbers {
			numbers[i] = int64(bytes[i])
		}
	default:
		return nil, fault.Bad("%s: expected integers, not %s %v", a.File, a.Dtype, a.Shape)
	}
	return numbers, nil
}

// Initial returns the initial values of all weights in the plan's order.
func (p *Plan) Initial() ([][]float64, error) {
	all := make([][]float64, len(p.Weights))
	for i := range p.Weights {
		values, err := p.Weights[i].Floats()
		if err != nil {
			return nil, fmt.Errorf("weight %s: %w", p.Weights[i].Name, err)
		}
		all[i] = values
	}
	return all, nil
}
