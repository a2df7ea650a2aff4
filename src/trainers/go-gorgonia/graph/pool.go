package graph

import (
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/trainer"
)

// pool is a maximum over windows. Padding never wins, a tie goes to the first, NaN to the first NaN.
// Gorgonia's own ends the whole program where a window holds nothing but NaN, as in a training that
// diverged.
type pool[T trainer.Number] struct {
	size, step, padding         int
	images                      int
	height, width, high, across int
	// The place in its image of each maximum.
	where []int32
}

// maxPool adds a maximum over windows of images x (n, c, h, w).
func maxPool[T trainer.Number](x *G.Node, size, step, padding int) (*G.Node, error) {
	shape := x.Shape()
	one := &pool[T]{
		size: size, step: step, padding: padding, images: shape[0] * shape[1], height: shape[2], width: shape[3],
		high: (shape[2]+2*padding-size)/step + 1, across: (shape[3]+2*padding-size)/step + 1,
	}
	one.where = make([]int32, one.images*one.high*one.across)
	after := tensor.Shape{shape[0], shape[1], one.high, one.across}
	return apply("max pool", after, one.forward, one.differentiate, x)
}

// best is the place of a window's maximum in its image.
func (o *pool[T]) best(image []T, row, column int) int {
	found := -1
	for y := max(0, row); y < min(o.height, row+o.size); y++ {
		for x := max(0, column); x < min(o.width, column+o.size); x++ {
			place := y*o.width + x
			if found < 0 || image[place] > image[found] || image[place] != image[place] && image[found] == image[found] {
				found = place
			}
		}
	}
	return found
}

func (o *pool[T]) forward(result []T, inputs [][]T) {
	area := o.height * o.width
	inParallel(o.images, func(from, to int) {
		for i := from; i < to; i++ {
			image := inputs[0][i*area : (i+1)*area]
			for row := range o.high {
				for column := range o.across {
					place := (i*o.high+row)*o.across + column
					found := o.best(image, row*o.step-o.padding, column*o.step-o.padding)
					if found < 0 {
						// All of the window is padding.
						result[place] = T(math.Inf(-1))
					} else {
						result[place] = image[found]
					}
					o.where[place] = int32(found)
				}
			}
		}
	})
}

func (o *pool[T]) backward(result []T, inputs [][]T) {
	gradient := inputs[0]
	area, windows := o.height*o.width, o.high*o.across
	inParallel(o.images, func(from, to int) {
		for i := from; i < to; i++ {
			image := result[i*area : (i+1)*area]
			clear(image)
			for place := i * windows; place < (i+1)*windows; place++ {
				if found := o.where[place]; found >= 0 {
					image[found] += gradient[place]
				}
			}
		}
	})
}

func (o *pool[T]) differentiate(inputs G.Nodes, _, gradient *G.Node) (G.Nodes, error) {
	back, err := apply("max pool backwards", inputs[0].Shape(), o.backward, nil, gradient)
	return G.Nodes{back}, err
}

// globalAveragePool adds the mean over height and width: (n, c, h, w) becomes (n, c). Gorgonia's own
// has no derivative.
func globalAveragePool[T trainer.Number](x *G.Node) (*G.Node, error) {
	shape := x.Shape()
	area := shape[2] * shape[3]
	forward := func(result []T, inputs [][]T) {
		for i := range result {
			sum := 0.0
			for _, value := range inputs[0][i*area : (i+1)*area] {
				sum += float64(value)
			}
			result[i] = T(sum / float64(area))
		}
	}
	backward := func(result []T, inputs [][]T) {
		for i, value := range inputs[0] {
			each := value / T(area)
			for j := i * area; j < (i+1)*area; j++ {
				result[j] = each
			}
		}
	}
	differentiate := func(_ G.Nodes, _, gradient *G.Node) (G.Nodes, error) {
		back, err := apply("average pool backwards", shape, backward, nil, gradient)
		return G.Nodes{back}, err
	}
	return apply("average pool", tensor.Shape{shape[0], shape[1]}, forward, differentiate, x)
}
