// Package graph trains a model by Gorgonia's automatic differentiation: its graph, its tape machine, its
// convolutions and products, and operators of this package's own where Gorgonia lacks one or differs.
package graph

import (
	"fmt"

	"transect-trainer-go/trainer"
)

// Weight is an array of a model in the plan's order, with its values.
type Weight struct {
	Name    string
	Trained bool
	Shape   []int
	Values  []float64
}

// Rule is an update rule over flat arrays; it keeps its own states.
type Rule[T trainer.Number] interface {
	Update(weights, gradient []T, learningRate float64) error
	States() [][]T
	SetUpdates(updates int)
}

// Model is what a trainer is built from.
type Model struct {
	Layers  []Layer
	Sample  []int
	Loss    string
	Weights []Weight
	// Samples of a rank's part of a batch.
	Batch int
}

// Trainer is a model with its optimiser on one rank.
type Trainer[T trainer.Number] struct {
	model                Model
	rule                 Rule[T]
	parameters, gradient []T
	arrays               map[string]array[T]
	layers               []trainer.Range
	ready                ready
	gradients            map[string]sink[T]
	training, prediction *machine[T]
}

var _ trainer.Trainer[float64] = (*Trainer[float64])(nil)

// New rounds the weights to T and compiles the training's graph.
func New[T trainer.Number](model Model, rule func(size int) (Rule[T], error)) (*Trainer[T], error) {
	t := &Trainer[T]{model: model, arrays: map[string]array[T]{}, gradients: map[string]sink[T]{}}
	var names []string
	var sizes []int
	all := 0
	for _, weight := range model.Weights {
		if weight.Trained {
			names, sizes = append(names, weight.Name), append(sizes, len(weight.Values))
			all += len(weight.Values)
		}
	}
	var of []int
	t.layers, of = layersOf(names, sizes)
	t.ready = ready{missing: make([]int, len(t.layers)), arrays: make([]int, len(t.layers))}
	t.parameters, t.gradient = make([]T, all), make([]T, all)
	at := 0
	for _, weight := range model.Weights {
		size := len(weight.Values)
		if !weight.Trained {
			t.arrays[weight.Name] = array[T]{shape: weight.Shape, numbers: make([]T, size)}
			continue
		}
		t.arrays[weight.Name] = array[T]{shape: weight.Shape, numbers: t.parameters[at : at+size : at+size]}
		layer := of[len(t.gradients)]
		t.ready.arrays[layer]++
		t.gradients[weight.Name] = sink[T]{into: t.gradient[at : at+size], done: func() { t.ready.done(layer) }}
		at += size
	}
	var err error
	if t.rule, err = rule(all); err != nil {
		return nil, err
	}
	for _, weight := range model.Weights {
		round(t.arrays[weight.Name].numbers, weight.Values)
	}
	t.training, err = t.compiled(model.Batch, true)
	return t, err
}

func round[T trainer.Number](into []T, from []float64) {
	for i, value := range from {
		into[i] = T(value)
	}
}

func (t *Trainer[T]) compiled(n int, training bool) (*machine[T], error) {
	gradients := t.gradients
	if !training {
		gradients = nil
	}
	return compile(t.model.Layers, t.model.Sample, n, t.arrays, t.model.Loss, gradients)
}

// ForwardBackward returns the batch's mean loss and leaves its gradients in Gradient. OnReady's
// function is called from a goroutine of the tape machine, while this one waits.
func (t *Trainer[T]) ForwardBackward(batch trainer.Batch[T]) (float64, error) {
	if batch.N != t.training.n {
		// A graph knows its shapes.
		machine, err := t.compiled(batch.N, true)
		if err != nil {
			return 0, err
		}
		t.training = machine
	}
	if len(batch.X) != len(t.training.input) || len(batch.Labels) != batch.N {
		return 0, fmt.Errorf("%d numbers and %d labels of %d samples, expected %d and %d",
			len(batch.X), len(batch.Labels), batch.N, len(t.training.input), batch.N)
	}
	classes := int64(t.training.loss.classes)
	for _, label := range batch.Labels {
		if label < 0 || label >= classes {
			return 0, fmt.Errorf("label %d of %d classes", label, classes)
		}
	}
	t.training.loss.labels = batch.Labels
	t.ready.begin()
	if err := t.training.run(batch.X); err != nil {
		return 0, err
	}
	return t.training.loss.mean, nil
}

// Gradient returns the flat gradient itself.
func (t *Trainer[T]) Gradient() []T { return t.gradient }

// Parameters returns the trained weights themselves.
func (t *Trainer[T]) Parameters() []T { return t.parameters }

// Layers returns the ranges of the top layers with trained weights.
func (t *Trainer[T]) Layers() []trainer.Range { return t.layers }

// OnReady has `ready` called when a layer's gradient is final.
func (t *Trainer[T]) OnReady(ready func(layer int)) { t.ready.tell = ready }

// Update applies the update rule.
func (t *Trainer[T]) Update(learningRate float64) error {
	return t.rule.Update(t.parameters, t.gradient, learningRate)
}

// Predict returns the outputs of n samples x, in parts of a batch.
func (t *Trainer[T]) Predict(x []T, n int) ([]T, error) {
	if t.prediction == nil {
		machine, err := t.compiled(t.model.Batch, false)
		if err != nil {
			return nil, err
		}
		t.prediction = machine
	}
	each := len(t.prediction.input) / t.prediction.n
	if len(x) != n*each {
		return nil, fmt.Errorf("%d numbers of %d samples of %d", len(x), n, each)
	}
	var outputs []T
	for first := 0; first < n; first += t.prediction.n {
		last := min(n, first+t.prediction.n)
		if err := t.prediction.run(x[first*each : last*each]); err != nil {
			return nil, err
		}
		part := t.prediction.outputs.Value().Data().([]T)
		outputs = append(outputs, part[:len(part)/t.prediction.n*(last-first)]...)
	}
	return outputs, nil
}

// Weights returns copies in the plan's order.
func (t *Trainer[T]) Weights() [][]float64 {
	all := make([][]float64, len(t.model.Weights))
	for i, weight := range t.model.Weights {
		numbers := t.arrays[weight.Name].numbers
		all[i] = make([]float64, len(numbers))
		for j, value := range numbers {
			all[i][j] = float64(value)
		}
	}
	return all
}

// Resume goes on from a state.
func (t *Trainer[T]) Resume(state trainer.State) error {
	if len(state.Weights) != len(t.model.Weights) || len(state.States) != len(t.rule.States()) {
		return fmt.Errorf("a state of %d arrays and %d states of the optimiser, expected %d and %d",
			len(state.Weights), len(state.States), len(t.model.Weights), len(t.rule.States()))
	}
	for i, weight := range t.model.Weights {
		if len(state.Weights[i]) != len(weight.Values) {
			return fmt.Errorf("a state with %d numbers of %q, expected %d", len(state.Weights[i]), weight.Name, len(weight.Values))
		}
		round(t.arrays[weight.Name].numbers, state.Weights[i])
	}
	for i, own := range t.rule.States() {
		at := 0
		for _, given := range state.States[i] {
			if at+len(given) > len(own) {
				return fmt.Errorf("state %d of the optimiser has more than %d numbers", i, len(own))
			}
			round(own[at:], given)
			at += len(given)
		}
		if at != len(own) {
			return fmt.Errorf("state %d of the optimiser has %d numbers, expected %d", i, at, len(own))
		}
	}
	t.rule.SetUpdates(state.Updates)
	return nil
}
