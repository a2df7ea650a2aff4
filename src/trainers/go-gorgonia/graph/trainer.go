// Package graph trains a model by Gorgonia's automatic differentiation: its graph, its tape machine, its
// convolutions and products, and operators of this package's own where Gorgonia lacks one or is wrong.
package graph

import (
	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/rules"
	"transect-trainer-go/trainer"
)

// Net is a model with its optimiser on one rank: a trainer.Trainer.
type Net[T trainer.Number] struct {
	plan                 *plan.Plan
	rule                 *rules.Rule[T]
	parameters, gradient []T
	arrays               map[string]array[T]
	layers               []trainer.Range
	ready                ready
	gradients            map[string]sink[T]
	training, prediction *machine[T]
	predicted            number.Buffer[T]
}

// New rounds the plan's weights to T and compiles the training's graph.
func New[T trainer.Number](p *plan.Plan) (trainer.Trainer[T], error) {
	if p.Model.Layers == nil || p.Model.Inputs != "float" {
		return nil, fault.Bad("Gorgonia's nets are lists of layers of floats, not a %s of %s", p.Model.Kind, p.Model.Inputs)
	}
	initial, err := p.Initial()
	if err != nil {
		return nil, err
	}
	net := &Net[T]{plan: p}
	net.share()
	if net.rule, err = rules.New[T](p.Rule, len(net.parameters), number.NewTeam(p.Cell.Threads)); err != nil {
		return nil, err
	}
	net.load(initial)
	if net.training, err = compile(p, p.LocalBatch(), net.arrays, net.gradients); err != nil {
		return nil, err
	}
	return net, nil
}

// share gives each array its place in the flat buffers, and each layer its arrays.
func (net *Net[T]) share() {
	var names []string
	var sizes []int
	all := 0
	for i := range net.plan.Weights {
		if weight := &net.plan.Weights[i]; weight.Trained {
			names, sizes = append(names, weight.Name), append(sizes, weight.Count())
			all += weight.Count()
		}
	}
	ranges, of := layersOf(names, sizes)
	net.layers = ranges
	net.ready = ready{missing: make([]int, len(ranges)), arrays: make([]int, len(ranges))}
	net.parameters, net.gradient = number.Make[T](all), number.Make[T](all)
	net.arrays, net.gradients = map[string]array[T]{}, map[string]sink[T]{}
	at := 0
	for i := range net.plan.Weights {
		weight := &net.plan.Weights[i]
		if !weight.Trained {
			net.arrays[weight.Name] = array[T]{shape: weight.Shape, values: make([]T, weight.Count())}
			continue
		}
		layer, end := of[len(net.gradients)], at+weight.Count()
		net.ready.arrays[layer]++
		net.arrays[weight.Name] = array[T]{shape: weight.Shape, values: net.parameters[at:end:end]}
		net.gradients[weight.Name] = sink[T]{into: net.gradient[at:end], done: func() { net.ready.done(layer) }}
		at = end
	}
}

// load rounds weights in the plan's order.
func (net *Net[T]) load(weights [][]float64) {
	for i, values := range weights {
		number.Round(net.arrays[net.plan.Weights[i].Name].values, values)
	}
}

// ForwardBackward returns the batch's mean loss and leaves its gradients in Gradient. OnReady's
// function is called from a goroutine of the tape machine, while this one waits.
func (net *Net[T]) ForwardBackward(batch trainer.Batch[T]) (float64, error) {
	if batch.N != net.training.n {
		return 0, fault.Bad("a batch of %d samples, the graph was compiled for %d", batch.N, net.training.n)
	}
	if len(batch.X) != len(net.training.input) || len(batch.Labels) != batch.N {
		return 0, fault.Bad("a batch of %d samples has %d numbers and %d labels, expected %d and %d",
			batch.N, len(batch.X), len(batch.Labels), len(net.training.input), batch.N)
	}
	classes := int64(net.training.loss.classes)
	for _, label := range batch.Labels {
		if label < 0 || label >= classes {
			return 0, fault.Bad("a sample has class %d, the model has %d outputs", label, classes)
		}
	}
	net.training.loss.labels = batch.Labels
	net.ready.begin()
	if err := net.training.run(batch.X); err != nil {
		return 0, err
	}
	return net.training.loss.mean, nil
}

// Gradient returns the flat gradient itself.
func (net *Net[T]) Gradient() []T { return net.gradient }

// Parameters returns the trained weights themselves.
func (net *Net[T]) Parameters() []T { return net.parameters }

// Layers returns the ranges of the list's layers with trained weights; a residual one counts as one.
func (net *Net[T]) Layers() []trainer.Range { return net.layers }

// OnReady has `ready` called when a layer's gradient is final.
func (net *Net[T]) OnReady(ready func(layer int)) { net.ready.tell = ready }

// Update applies the update rule.
func (net *Net[T]) Update(learningRate float64) error {
	net.rule.Update(net.parameters, net.gradient, learningRate)
	return nil
}

// Predict returns the outputs of n samples x; a graph takes as many at once as a batch has.
func (net *Net[T]) Predict(x []T, n int) ([]T, error) {
	if net.prediction == nil {
		machine, err := compile(net.plan, net.training.n, net.arrays, nil)
		if err != nil {
			return nil, err
		}
		net.prediction = machine
	}
	batch, each := net.prediction.n, len(net.prediction.input)/net.prediction.n
	if len(x) != n*each {
		return nil, fault.Bad("%d numbers of %d samples of %d", len(x), n, each)
	}
	classes := net.prediction.outputs.Shape()[1]
	all := net.predicted.Of(n * classes)
	for first := 0; first < n; first += batch {
		last := min(n, first+batch)
		if err := net.prediction.run(x[first*each : last*each]); err != nil {
			return nil, err
		}
		copy(all[first*classes:last*classes], net.prediction.outputs.Value().Data().([]T))
	}
	return all, nil
}

// Weights returns copies in the plan's order.
func (net *Net[T]) Weights() [][]float64 {
	all := make([][]float64, len(net.plan.Weights))
	for i := range net.plan.Weights {
		all[i] = number.Wide(net.arrays[net.plan.Weights[i].Name].values)
	}
	return all
}

// Resume goes on from a state.
func (net *Net[T]) Resume(state trainer.State) error {
	if len(state.Weights) != len(net.plan.Weights) || len(state.States) != len(net.rule.States) {
		return fault.Bad("a state has %d arrays of weights and %d states of the optimiser, expected %d and %d",
			len(state.Weights), len(state.States), len(net.plan.Weights), len(net.rule.States))
	}
	net.load(state.Weights)
	for i, arrays := range state.States {
		at := 0
		for _, values := range arrays {
			number.Round(net.rule.States[i][at:], values)
			at += len(values)
		}
	}
	net.rule.Updates = state.Updates
	return nil
}
