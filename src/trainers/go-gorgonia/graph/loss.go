package graph

import (
	"math"

	G "gorgonia.org/gorgonia"

	"transect-trainer-go/fault"
	"transect-trainer-go/trainer"
)

// loss is the mean loss over a batch, as in training/frameworks/_numpy_layers.py.
type loss[T trainer.Number] struct {
	classes int
	// Of the batch: the class of each sample.
	labels []int64
	// Of the last run, in float64.
	mean float64
}

// meanLoss adds the loss of outputs (n, classes); the labels are to be set before each run.
func meanLoss[T trainer.Number](kind string, outputs *G.Node) (*loss[T], *G.Node, error) {
	if outputs.Shape().Dims() != 2 {
		return nil, nil, fault.Bad("a loss of outputs of shape %v, not (n, classes)", outputs.Shape())
	}
	one := &loss[T]{classes: outputs.Shape()[1]}
	forward, backward := one.crossEntropy, one.forCrossEntropy
	switch kind {
	case "cross-entropy":
	case "mse":
		forward, backward = one.squares, one.forSquares
	default:
		return nil, nil, fault.Bad("loss %q is not known: cross-entropy or mse", kind)
	}
	differentiate := func(inputs G.Nodes, _, gradient *G.Node) (G.Nodes, error) {
		back, err := apply(kind+" backwards", outputs.Shape(), backward, nil, inputs[0], gradient)
		return G.Nodes{back}, err
	}
	node, err := apply(kind, scalarShape, forward, differentiate, outputs)
	return one, node, err
}

// exponentials are those of a row, its maximum subtracted first, their sum and the maximum.
func exponentials[T trainer.Number](row []T, result []float64) (sum, highest float64) {
	highest = math.Inf(-1)
	for _, value := range row {
		highest = max(highest, float64(value))
	}
	for i, value := range row {
		result[i] = math.Exp(float64(value) - highest)
		sum += result[i]
	}
	return sum, highest
}

func (o *loss[T]) crossEntropy(result []T, inputs [][]T) {
	space, sum := make([]float64, o.classes), 0.0
	for i, label := range o.labels {
		row := inputs[0][i*o.classes : (i+1)*o.classes]
		exponents, highest := exponentials(row, space)
		sum += math.Log(exponents) - (float64(row[label]) - highest)
	}
	o.tell(result, sum)
}

func (o *loss[T]) forCrossEntropy(result []T, inputs [][]T) {
	space, share := make([]float64, o.classes), float64(inputs[1][0])/float64(len(o.labels))
	for i, label := range o.labels {
		begin := i * o.classes
		exponents, _ := exponentials(inputs[0][begin:begin+o.classes], space)
		for j, value := range space {
			result[begin+j] = T(value / exponents * share)
		}
		result[begin+int(label)] = T((space[label]/exponents - 1) * share)
	}
}

func (o *loss[T]) squares(result []T, inputs [][]T) {
	sum := 0.0
	for i, label := range o.labels {
		for j, value := range inputs[0][i*o.classes : (i+1)*o.classes] {
			distance := float64(value)
			if j == int(label) {
				distance--
			}
			sum += distance * distance
		}
	}
	o.tell(result, 0.5*sum)
}

func (o *loss[T]) forSquares(result []T, inputs [][]T) {
	share := inputs[1][0] / T(len(o.labels))
	for i, label := range o.labels {
		for j := range o.classes {
			result[i*o.classes+j] = inputs[0][i*o.classes+j] * share
		}
		place := i*o.classes + int(label)
		result[place] = (inputs[0][place] - 1) * share
	}
}

func (o *loss[T]) tell(result []T, sum float64) {
	o.mean = sum / float64(len(o.labels))
	result[0] = T(o.mean)
}
