package nets

import (
	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/rules"
	"transect-trainer-go/trainer"
)

// Net is a list of layers with its optimiser: a trainer.Trainer. Trained weights and their gradients lie in
// flat buffers of which each array is a part.
type Net[T trainer.Number] struct {
	plan                 *plan.Plan
	chain                *chain[T]
	sample               shape
	rows                 bool
	outputs, batch       int
	weights              [][]T
	parameters, gradient []T
	rule                 *rules.Rule[T]
	layers               []trainer.Range
	ready                func(layer int)
	input, outcome       number.Buffer[T]
	predicted            number.Buffer[T]
	loss                 func(outputs []T, labels []int64, gradient []T) float64
}

// New builds the plan's model from the plan's weights.
func New[T trainer.Number](p *plan.Plan) (trainer.Trainer[T], error) {
	if p.Model.Layers == nil {
		return nil, fault.Bad("the trainer in Go builds lists of layers, not a %s", p.Model.Kind)
	}
	if p.Model.Inputs != "float" {
		return nil, fault.Bad("the trainer in Go takes samples of floats, not of %s", p.Model.Inputs)
	}
	initial, err := p.Initial()
	if err != nil {
		return nil, err
	}
	trained := 0
	for i := range p.Weights {
		if p.Weights[i].Trained {
			trained += p.Weights[i].Count()
		}
	}
	team := number.NewTeam(p.Cell.Threads)
	net := &Net[T]{
		plan: p, sample: p.Model.Sample, batch: p.LocalBatch(), loss: lossOf[T](p.Rule.Loss),
		parameters: number.Make[T](trained), gradient: number.Make[T](trained),
	}
	if net.rule, err = rules.New[T](p.Rule, trained, team); err != nil {
		return nil, err
	}
	bind := &binder[T]{plan: p, team: team}
	at := 0
	for i := range p.Weights {
		count := p.Weights[i].Count()
		if !p.Weights[i].Trained {
			bind.weights, bind.gradients = append(bind.weights, make([]T, count)), append(bind.gradients, nil)
			continue
		}
		bind.weights = append(bind.weights, net.parameters[at:at+count:at+count])
		bind.gradients = append(bind.gradients, net.gradient[at:at+count:at+count])
		at += count
	}
	net.weights = bind.weights
	if err := net.build(bind); err != nil {
		return nil, err
	}
	net.load(initial)
	return net, nil
}

// build makes the layers, and notes which part of the flat buffers is whose.
func (net *Net[T]) build(bind *binder[T]) error {
	places := map[int]int{}
	var end shape
	sample, at := net.sample, 0
	if layers := net.plan.Model.Layers; len(layers) > 0 && layers[0].Kind == "Flatten" {
		// Samples come as rows: there is nothing to arrange first and to flatten then.
		sample = shape{sample.numbers()}
		net.rows = true
	}
	net.chain = &chain[T]{first: len(net.plan.Model.Layers)}
	for i, one := range net.plan.Model.Layers {
		before := bind.next
		part, after := makeLayer(one, sample, bind, where{first: i == 0})
		first := at
		for _, weight := range net.plan.Weights[before:bind.next] {
			if weight.Trained {
				at += weight.Count()
			}
		}
		net.chain.parts = append(net.chain.parts, part)
		net.chain.trained = append(net.chain.trained, at > first)
		if at > first {
			net.chain.first = min(net.chain.first, i)
			places[i] = len(net.layers)
			net.layers = append(net.layers, trainer.Range{First: first, Last: at})
		}
		sample, end = after, after
	}
	if bind.next != len(bind.weights) {
		return fault.Bad("the plan has %d arrays of weights, its layers %d", len(bind.weights), bind.next)
	}
	if len(end) != 1 {
		return fault.Bad("the model ends in samples of shape %v, not in outputs of classes", end)
	}
	net.outputs = end[0]
	net.chain.after = func(part int) {
		if net.ready != nil {
			net.ready(places[part])
		}
	}
	return nil
}

// load rounds weights to the net's precision.
func (net *Net[T]) load(weights [][]float64) {
	for i, values := range weights {
		number.Round(net.weights[i], values)
	}
}

// arranged returns samples as the first layer takes them.
func (net *Net[T]) arranged(x []T, n int) []T {
	if net.rows || len(net.sample) != 3 || net.sample[0] == 1 {
		return x
	}
	images := net.input.Of(len(x))
	toRows(images, x, n, net.sample[0], net.sample[1]*net.sample[2])
	return images
}

// ForwardBackward computes the mean loss; gradients land in the flat buffer.
func (net *Net[T]) ForwardBackward(batch trainer.Batch[T]) (float64, error) {
	if batch.N < 1 || len(batch.Labels) != batch.N || len(batch.X) != batch.N*net.sample.numbers() {
		return 0, fault.Bad("a batch of %d samples has %d numbers and %d labels, expected %d of each sample and one label",
			batch.N, len(batch.X), len(batch.Labels), net.sample.numbers())
	}
	for _, label := range batch.Labels {
		if label < 0 || label >= int64(net.outputs) {
			return 0, fault.Bad("a sample has class %d, the model has %d outputs", label, net.outputs)
		}
	}
	outputs := net.chain.forward(net.arranged(batch.X, batch.N), batch.N, true)
	gradient := net.outcome.Of(len(outputs))
	loss := net.loss(outputs, batch.Labels, gradient)
	net.chain.backward(gradient, batch.N, false)
	return loss, nil
}

// Gradient returns the flat buffer itself.
func (net *Net[T]) Gradient() []T { return net.gradient }

// Parameters returns the flat buffer itself.
func (net *Net[T]) Parameters() []T { return net.parameters }

// Layers returns the ranges of the list's layers with weights; a residual one counts as one.
func (net *Net[T]) Layers() []trainer.Range { return net.layers }

// OnReady has `ready` called in the backward pass.
func (net *Net[T]) OnReady(ready func(layer int)) { net.ready = ready }

// Update applies the rule.
func (net *Net[T]) Update(rate float64) error {
	net.rule.Update(net.parameters, net.gradient, rate)
	return nil
}

// Numbers of inputs that are predicted at once: small batches would cost more calls than computing.
const predictedNumbers = 1 << 13

// Predict takes no more samples at once than a batch has, unless they are small, so that it needs no more memory.
func (net *Net[T]) Predict(x []T, n int) ([]T, error) {
	all := net.predicted.Of(n * net.outputs)
	size := net.sample.numbers()
	some := max(net.batch, predictedNumbers/size)
	for first := 0; first < n; first += some {
		last := min(n, first+some)
		images := net.arranged(x[first*size:last*size], last-first)
		copy(all[first*net.outputs:], net.chain.forward(images, last-first, false))
	}
	return all, nil
}

// Weights returns copies in the plan's order.
func (net *Net[T]) Weights() [][]float64 {
	all := make([][]float64, len(net.weights))
	for i, values := range net.weights {
		all[i] = number.Wide(values)
	}
	return all
}

// Resume goes on from a state.
func (net *Net[T]) Resume(state trainer.State) error {
	if len(state.Weights) != len(net.weights) || len(state.States) != len(net.rule.States) {
		return fault.Bad("a state has %d arrays of weights and %d states of the optimiser, expected %d and %d",
			len(state.Weights), len(state.States), len(net.weights), len(net.rule.States))
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
