package graph

import (
	"strings"

	G "gorgonia.org/gorgonia"

	"transect-trainer-go/trainer"
)

// ready tells a strategy which layers' gradients are final. The tape computes gradients in an order of
// its own; strategies are told the last layer first, so that all ranks send in the same order.
type ready struct {
	// How many arrays of each layer are still to come, and from the start of a step.
	missing, arrays []int
	// The next layer to tell.
	next int
	tell func(layer int)
}

func (o *ready) begin() {
	copy(o.missing, o.arrays)
	o.next = len(o.arrays) - 1
}

func (o *ready) done(layer int) {
	o.missing[layer]--
	for o.next >= 0 && o.missing[o.next] == 0 {
		if o.tell != nil {
			o.tell(o.next)
		}
		o.next--
	}
}

// tap adds the copy of a gradient into its place in the flat one.
func tap[T trainer.Number](gradient *G.Node, into []T, done func()) (*G.Node, error) {
	forward := func(result []T, inputs [][]T) {
		copy(into, inputs[0])
		result[0] = 0
		done()
	}
	// A scalar: nobody reads it, and an operator has to have a result.
	return apply("gradient", scalarShape, forward, nil, gradient)
}

// layersOf are the ranges of the top layers with trained weights, and each trained array's layer;
// names are those of training/layers.py, such as "4.body.1.bias" of layer 4.
func layersOf(names []string, sizes []int) (ranges []trainer.Range, of []int) {
	last, at := "", 0
	for i, name := range names {
		top, _, _ := strings.Cut(name, ".")
		if i == 0 || top != last {
			ranges = append(ranges, trainer.Range{First: at, Last: at})
			last = top
		}
		at += sizes[i]
		ranges[len(ranges)-1].Last = at
		of = append(of, len(ranges)-1)
	}
	return ranges, of
}
