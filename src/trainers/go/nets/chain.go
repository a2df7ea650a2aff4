// Package nets computes lists of layers (training/layers.py) forwards and backwards, from scratch.
//
// Samples without place are rows, (n, features). Images lie channel by channel, (channels, n, height,
// width): then a convolution of a whole batch is one product of matrices without any transposition, and
// all that a batch norm or a bias does is along rows.
package nets

import (
	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// layer computes n samples at a time. What it returns stays until it computes the next ones.
type layer[T trainer.Number] interface {
	forward(x []T, n int, training bool) []T
	// backward takes the gradient of the outputs, which it may overwrite, writes those of its weights and
	// returns that of its inputs, nil unless `need`.
	backward(g []T, n int, need bool) []T
}

// shape is that of one sample: of images three numbers, else one.
type shape []int

func (s shape) numbers() int {
	count := 1
	for _, length := range s {
		count *= length
	}
	return count
}

// binder deals out the weights in the model's order.
type binder[T trainer.Number] struct {
	plan      *plan.Plan
	weights   [][]T
	gradients [][]T
	team      *number.Team
	next      int
}

// take returns the next array, which must have that many numbers, and its gradient.
func (b *binder[T]) take(numbers int, what string) ([]T, []T) {
	if b.next >= len(b.weights) || len(b.weights[b.next]) != numbers {
		panic(fault.Bad("the plan's weights do not fit its layers: array %d of %d is to be the %d numbers of %s",
			b.next, len(b.weights), numbers, what))
	}
	b.next++
	return b.weights[b.next-1], b.gradients[b.next-1]
}

// chain is layers one after another.
type chain[T trainer.Number] struct {
	parts   []layer[T]
	trained []bool
	// Before it nobody needs a gradient.
	first int
	// after is called with the place of each layer whose backward pass is over; nil: nobody asks.
	after func(part int)
}

func (c *chain[T]) forward(x []T, n int, training bool) []T {
	for _, part := range c.parts {
		x = part.forward(x, n, training)
	}
	return x
}

func (c *chain[T]) backward(g []T, n int, need bool) []T {
	last := c.first
	if need {
		last = 0
	}
	for i := len(c.parts) - 1; i >= last; i-- {
		g = c.parts[i].backward(g, n, need || i > last)
		if c.after != nil && c.trained[i] {
			c.after(i)
		}
	}
	if !need {
		return nil
	}
	return g
}

// build makes layers one after another: the model's, or those of one side of a layer that has several. Then the input
// of its first layer is the other sides' too, and so is the gradient of its last one.
func build[T trainer.Number](layers []plan.Layer, sample shape, b *binder[T]) (*chain[T], shape) {
	made := &chain[T]{first: len(layers)}
	for i, one := range layers {
		before := b.next
		place := where{first: i == 0, last: i == len(layers)-1}
		part, after := makeLayer(one, sample, b, place)
		made.parts = append(made.parts, part)
		trained := b.next > before
		made.trained = append(made.trained, trained)
		if trained && made.first == len(layers) {
			made.first = i
		}
		sample = after
	}
	return made, sample
}

// where a layer stands: what it gets first or last it must not overwrite.
type where struct{ first, last bool }

func makeLayer[T trainer.Number](one plan.Layer, sample shape, b *binder[T], place where) (layer[T], shape) {
	image := len(sample) == 3
	fits := false
	switch one.Kind {
	case "Linear", "LayerNorm":
		fits = len(sample) == 1 && sample[0] == one.Inputs+one.Features
	case "Conv2d", "BatchNorm2d":
		fits = image && sample[0] == one.Inputs+one.Channels
	case "MaxPool2d", "GlobalAveragePool", "Branches":
		fits = image
	case "ReLU", "Sigmoid", "Flatten", "Residual":
		fits = true
	default:
		panic(fault.Bad("the trainer in Go has no layer %q", one.Kind))
	}
	if !fits {
		panic(fault.Bad("layer %s does not take samples of shape %v", one.Kind, sample))
	}
	switch one.Kind {
	case "Linear":
		return newLinear(one, b), shape{one.Outputs}
	case "Conv2d":
		made := newConvolution(one, sample, b)
		return made, shape{made.outputs, made.outHeight, made.outWidth}
	case "BatchNorm2d":
		return newBatchNorm(one, sample, b), sample
	case "LayerNorm":
		return newLayerNorm[T](one, b.team), sample
	case "MaxPool2d":
		made := newMaxPool[T](one, sample, b.team)
		return made, shape{sample[0], made.outHeight, made.outWidth}
	case "GlobalAveragePool":
		return &averagePool[T]{channels: sample[0], area: sample[1] * sample[2]}, shape{sample[0]}
	case "ReLU":
		return newReLU[T](sample, b.team, place), sample
	case "Sigmoid":
		return newSigmoid[T](sample, b.team, place), sample
	case "Flatten":
		if !image {
			return &same[T]{}, shape{sample.numbers()}
		}
		return &flatten[T]{channels: sample[0], area: sample[1] * sample[2]}, shape{sample.numbers()}
	case "Branches":
		made := newBranches(one, sample, b)
		return made, made.after
	}
	body, end := build(one.Body, sample, b)
	shortcut, other := build(one.Shortcut, sample, b)
	if end.numbers() != other.numbers() || len(end) != len(other) {
		panic(fault.Bad("a residual layer's body ends in %v, its shortcut in %v", end, other))
	}
	return newResidual(body, shortcut, sample, end, b.team), end
}
