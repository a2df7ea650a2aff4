package graph

import (
	"fmt"
	"hash"
	"hash/fnv"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

// Gorgonia takes nodes of equal hash for one and computes them once. These operators hold buffers and
// statistics, so each has a number of its own in its hash.
var operators atomic.Uint64

// differentiator returns the nodes of the gradients of an operator's inputs.
type differentiator func(inputs G.Nodes, output, gradient *G.Node) (G.Nodes, error)

// operator is an operator that Gorgonia lacks or has otherwise. Its result is the same memory in
// every step: the tape machine itself allocates each value anew.
type operator[T trainer.Number] struct {
	name   string
	number uint64
	// Axes of each input and of the result; 0 is a scalar.
	axes []int
	// Of the result.
	shape   tensor.Shape
	compute func(result []T, inputs [][]T)
	// nil where nothing is differentiated any further.
	differentiate differentiator
	// nil of a scalar.
	result *tensor.Dense
}

// apply adds an operator's node to the graph of its inputs.
func apply[T trainer.Number](
	name string, shape tensor.Shape, compute func(result []T, inputs [][]T),
	differentiate differentiator, inputs ...*G.Node,
) (*G.Node, error) {
	op := &operator[T]{
		name: name, number: operators.Add(1), shape: shape, compute: compute, differentiate: differentiate,
	}
	if !shape.IsScalar() {
		// Here, where a lack of memory can still be told; the machine computes in a goroutine of its own.
		op.result = dense(number.Make[T](shape.TotalSize()), shape)
	}
	for _, input := range inputs {
		op.axes = append(op.axes, input.Shape().Dims())
	}
	return G.ApplyOp(op, inputs...)
}

// Arity is the number of inputs.
func (op *operator[T]) Arity() int { return len(op.axes) }

// Type has one type of number in all inputs and the result.
func (op *operator[T]) Type() hm.Type {
	number := hm.TypeVariable('a')
	var types []hm.Type
	for _, axes := range append(append([]int{}, op.axes...), op.shape.Dims()) {
		if axes == 0 {
			types = append(types, number)
			continue
		}
		types = append(types, G.TensorType{Dims: axes, Of: number})
	}
	return hm.NewFnType(types...)
}

// InferShape is known when the node is made.
func (op *operator[T]) InferShape(...G.DimSizer) (tensor.Shape, error) { return op.shape.Clone(), nil }

// Do computes the result into the operator's own memory.
func (op *operator[T]) Do(values ...G.Value) (G.Value, error) {
	inputs := make([][]T, len(values))
	for i, value := range values {
		if dense, is := value.(*tensor.Dense); is && dense.RequiresIterator() {
			return nil, fmt.Errorf("%v: input %d of shape %v is not row after row in memory", op, i, dense.Shape())
		}
		switch data := value.Data().(type) {
		case []T:
			inputs[i] = data
		case T:
			inputs[i] = []T{data}
		default:
			return nil, fmt.Errorf("%v: input %d holds %T", op, i, data)
		}
	}
	if op.shape.IsScalar() {
		one := make([]T, 1)
		op.compute(one, inputs)
		return scalar(one[0]), nil
	}
	op.compute(op.result.Data().([]T), inputs)
	return op.result, nil
}

// ReturnsPtr says that the result is no copy.
func (op *operator[T]) ReturnsPtr() bool { return true }

// CallsExtern says that it is all Go.
func (op *operator[T]) CallsExtern() bool { return false }

// OverwritesInput says that inputs stay.
func (op *operator[T]) OverwritesInput() int { return -1 }

// DiffWRT is all inputs or none.
func (op *operator[T]) DiffWRT(inputs int) []bool {
	wanted := make([]bool, inputs)
	for i := range wanted {
		wanted[i] = op.differentiate != nil
	}
	return wanted
}

// SymDiff adds the nodes of the gradients.
func (op *operator[T]) SymDiff(inputs G.Nodes, output, gradient *G.Node) (G.Nodes, error) {
	if op.differentiate == nil {
		return nil, fmt.Errorf("%v has no derivative", op)
	}
	return op.differentiate(inputs, output, gradient)
}

// WriteHash tells it from all others.
func (op *operator[T]) WriteHash(h hash.Hash) { fmt.Fprintf(h, "transect-%s-%d", op.name, op.number) }

// Hashcode is that of WriteHash.
func (op *operator[T]) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

func (op *operator[T]) String() string { return op.name }

// scalar is Gorgonia's value of a number.
func scalar[T trainer.Number](one T) G.Value {
	switch one := any(one).(type) {
	case float32:
		return G.NewF32(one)
	default:
		return G.NewF64(one.(float64))
	}
}

// dense shows numbers as a tensor, without a copy.
func dense[T trainer.Number](values []T, shape tensor.Shape) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape.Clone()...), tensor.WithBacking(values))
}

// dtype is Gorgonia's name of T.
func dtype[T trainer.Number]() tensor.Dtype {
	if _, is := any(T(0)).(float32); is {
		return tensor.Float32
	}
	return tensor.Float64
}

// inParallel calls `part` for parts [first, last) of n things, as many at once as Go may use threads.
func inParallel(n int, part func(first, last int)) {
	parts := min(n, runtime.GOMAXPROCS(0))
	if parts < 2 {
		part(0, n)
		return
	}
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { part(n*i/parts, n*(i+1)/parts) })
	}
	all.Wait()
}

var scalarShape = tensor.ScalarShape()
