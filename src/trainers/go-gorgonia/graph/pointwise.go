package graph

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/trainer"
)

// relu adds max(x, 0), whose derivative at 0 is 0; that of Gorgonia's Rectify is 1.
func relu[T trainer.Number](x *G.Node) (*G.Node, error) {
	forward := func(result []T, inputs [][]T) {
		inParallel(len(result), func(first, last int) {
			for i := first; i < last; i++ {
				result[i] = max(inputs[0][i], 0)
			}
		})
	}
	backward := func(result []T, inputs [][]T) {
		y, gradient := inputs[0], inputs[1]
		inParallel(len(result), func(first, last int) {
			for i := first; i < last; i++ {
				if y[i] > 0 {
					result[i] = gradient[i]
				} else {
					result[i] = 0
				}
			}
		})
	}
	differentiate := func(_ G.Nodes, output, gradient *G.Node) (G.Nodes, error) {
		back, err := apply("relu backwards", output.Shape(), backward, nil, output, gradient)
		return G.Nodes{back}, err
	}
	return apply("relu", x.Shape(), forward, differentiate, x)
}

// channels are the second axis of x (n, c, ...): how many, and the numbers behind each.
func channels(shape tensor.Shape) (n, count, area int) {
	return shape[0], shape[1], shape.TotalSize() / (shape[0] * shape[1])
}

// addBias adds a number to each channel of x (n, c, ...). Gorgonia repeats it to the size of x first.
func addBias[T trainer.Number](x, bias *G.Node) (*G.Node, error) {
	n, count, area := channels(x.Shape())
	forward := func(result []T, inputs [][]T) {
		x, bias := inputs[0], inputs[1]
		inParallel(n*count, func(first, last int) {
			for row := first; row < last; row++ {
				more := bias[row%count]
				for i := row * area; i < (row+1)*area; i++ {
					result[i] = x[i] + more
				}
			}
		})
	}
	differentiate := func(_ G.Nodes, _, gradient *G.Node) (G.Nodes, error) {
		sum, err := channelSum[T](gradient)
		return G.Nodes{gradient, sum}, err
	}
	return apply("bias", x.Shape(), forward, differentiate, x, bias)
}

// channelSum adds the sum of each channel of x (n, c, ...), summed in float64.
func channelSum[T trainer.Number](x *G.Node) (*G.Node, error) {
	n, count, area := channels(x.Shape())
	forward := func(result []T, inputs [][]T) {
		inParallel(count, func(first, last int) {
			for c := first; c < last; c++ {
				sum := 0.0
				for i := range n {
					begin := (i*count + c) * area
					for _, value := range inputs[0][begin : begin+area] {
						sum += float64(value)
					}
				}
				result[c] = T(sum)
			}
		})
	}
	return apply("channel sum", tensor.Shape{count}, forward, nil, x)
}
