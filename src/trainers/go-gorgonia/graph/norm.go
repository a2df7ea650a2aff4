package graph

import (
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/trainer"
)

// norm is a batch norm of training/layers.py: population variance of the batch in training, running
// statistics with the sample variance. Gorgonia's own divides by n - 1 where n is 1, loses its
// statistics to every new machine, and repeats weight and bias to the size of the images.
type norm[T trainer.Number] struct {
	n, channels, area int
	momentum, epsilon float64
	// Of the training: they are moved in place.
	runningMean, runningVar []T
	training                bool
	// Of the last batch, or the running ones; scale is 1 / sqrt(var + epsilon).
	mean, scale []T
}

// batchNorm adds a batch norm of images x (n, c, h, w).
func batchNorm[T trainer.Number](
	x, weight, bias *G.Node, runningMean, runningVar []T, momentum, epsilon float64, training bool,
) (*G.Node, error) {
	shape := x.Shape()
	one := &norm[T]{
		n: shape[0], channels: shape[1], area: shape[2] * shape[3], momentum: momentum, epsilon: epsilon,
		runningMean: runningMean, runningVar: runningVar, training: training,
		mean: make([]T, shape[1]), scale: make([]T, shape[1]),
	}
	return apply("batch norm", shape, one.forward, one.differentiate, x, weight, bias)
}

// rows calls `row` with each stretch of a channel's numbers.
func (o *norm[T]) rows(channel int, row func(first, last int)) {
	for i := range o.n {
		first := (i*o.channels + channel) * o.area
		row(first, first+o.area)
	}
}

// moments are a channel's mean and sum of squared distances from it, summed in float64.
func (o *norm[T]) moments(x []T, channel int) (mean, squares float64) {
	o.rows(channel, func(first, last int) {
		for _, value := range x[first:last] {
			mean += float64(value)
		}
	})
	mean /= float64(o.n * o.area)
	o.rows(channel, func(first, last int) {
		for _, value := range x[first:last] {
			distance := float64(value) - mean
			squares += distance * distance
		}
	})
	return mean, squares
}

func (o *norm[T]) forward(result []T, inputs [][]T) {
	x, weight, bias := inputs[0], inputs[1], inputs[2]
	count := float64(o.n * o.area)
	inParallel(o.channels, func(from, to int) {
		for c := from; c < to; c++ {
			variance := float64(o.runningVar[c])
			o.mean[c] = o.runningMean[c]
			if o.training {
				mean, squares := o.moments(x, c)
				variance = squares / count
				o.mean[c] = T(mean)
				o.runningMean[c] += T(o.momentum * (mean - float64(o.runningMean[c])))
				o.runningVar[c] += T(o.momentum * (squares/max(1, count-1) - float64(o.runningVar[c])))
			}
			o.scale[c] = T(1 / math.Sqrt(variance+o.epsilon))
			mean, scale := o.mean[c], o.scale[c]
			o.rows(c, func(first, last int) {
				for i := first; i < last; i++ {
					result[i] = (x[i]-mean)*scale*weight[c] + bias[c]
				}
			})
		}
	})
}

// forWeight sums a gradient times the normalised x.
func (o *norm[T]) forWeight(result []T, inputs [][]T) {
	x, gradient := inputs[0], inputs[1]
	inParallel(o.channels, func(from, to int) {
		for c := from; c < to; c++ {
			mean, sum := float64(o.mean[c]), 0.0
			o.rows(c, func(first, last int) {
				for i := first; i < last; i++ {
					sum += float64(gradient[i]) * (float64(x[i]) - mean)
				}
			})
			result[c] = T(sum * float64(o.scale[c]))
		}
	})
}

// forInput is the gradient of x; mean and variance depend on it too.
func (o *norm[T]) forInput(result []T, inputs [][]T) {
	x, weight, forWeight, forBias, gradient := inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]
	count := T(o.n * o.area)
	inParallel(o.channels, func(from, to int) {
		for c := from; c < to; c++ {
			mean, scale := o.mean[c], o.scale[c]
			slope, shift := forWeight[c]/count, forBias[c]/count
			o.rows(c, func(first, last int) {
				for i := first; i < last; i++ {
					result[i] = weight[c] * scale * (gradient[i] - shift - (x[i]-mean)*scale*slope)
				}
			})
		}
	})
}

func (o *norm[T]) differentiate(inputs G.Nodes, _, gradient *G.Node) (G.Nodes, error) {
	channels := tensor.Shape{o.channels}
	forWeight, err := apply("batch norm for weight", channels, o.forWeight, nil, inputs[0], gradient)
	if err != nil {
		return nil, err
	}
	forBias, err := channelSum[T](gradient)
	if err != nil {
		return nil, err
	}
	forInput, err := apply("batch norm for input", inputs[0].Shape(), o.forInput, nil,
		inputs[0], inputs[1], forWeight, forBias, gradient)
	return G.Nodes{forInput, forWeight, forBias}, err
}
