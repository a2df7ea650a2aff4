// Package trainer says what computes on one rank; strategies and the loop know nothing else of a model.
package trainer

// Number is what a model is computed in.
type Number interface{ float32 | float64 }

// Range is the part [First, Last) of a flat buffer that belongs to one layer.
type Range struct{ First, Last int }

// Batch is a rank's part of a batch: N samples row after row, in the model's precision.
// Labels has N entries, or N times as many where a sample has several.
type Batch[T Number] struct {
	N      int
	X      []T
	Labels []int64
}

// State is where a training stands after Updates updates, in the neutral layout and the plan's order.
type State struct {
	// Weights has all arrays, running statistics too; States, of each state of the optimiser, an
	// array for each trained weight (docs/equality.md).
	Weights [][]float64
	States  [][][]float64
	Updates int
}

// Trainer is one rank's model with its optimiser, as `Trainer` in training/frameworks/__init__.py.
type Trainer[T Number] interface {
	// ForwardBackward returns the batch's mean loss and leaves its gradients in Gradient.
	ForwardBackward(batch Batch[T]) (float64, error)
	// Gradient is the flat gradient itself, in the order of the plan's trained weights.
	Gradient() []T
	// Parameters are the trained weights themselves, flat, in the same order.
	Parameters() []T
	// Layers are the ranges of layers with trained weights, the first layer first; they cover Gradient.
	Layers() []Range
	// OnReady has `ready` called in the backward pass with the number (in Layers) of each layer whose
	// gradient is final, the last layer first. A trainer that cannot tell calls it for all at its end.
	OnReady(ready func(layer int))
	// Update applies the update rule.
	Update(learningRate float64) error
	// Predict returns the outputs of x (n samples), row after row.
	Predict(x []T, n int) ([]T, error)
	// Weights are copies of all weights, running statistics too, in the plan's order.
	Weights() [][]float64
	// Resume goes on from a state.
	Resume(state State) error
}
