package nets

import (
	"transect-trainer-go/blas"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// linear is y = x Wᵀ + b; W is (outputs, inputs).
type linear[T trainer.Number] struct {
	inputs, outputs              int
	weight, bias                 []T
	weightGradient, biasGradient []T
	x                            []T
	y, inner                     number.Buffer[T]
}

func newLinear[T trainer.Number](one plan.Layer, b *binder[T]) *linear[T] {
	l := &linear[T]{inputs: one.Inputs, outputs: one.Outputs}
	l.weight, l.weightGradient = b.take(one.Outputs*one.Inputs, "a linear layer's weight")
	l.bias, l.biasGradient = b.take(one.Outputs, "a linear layer's bias")
	return l
}

func (l *linear[T]) forward(x []T, n int, _ bool) []T {
	l.x = x
	y := l.y.Of(n * l.outputs)
	for i := range n {
		copy(y[i*l.outputs:(i+1)*l.outputs], l.bias)
	}
	blas.Product(false, true, n, l.outputs, l.inputs, x, l.inputs, l.weight, l.inputs, 1, y, l.outputs)
	return y
}

func (l *linear[T]) backward(g []T, n int, need bool) []T {
	blas.Product(true, false, l.outputs, l.inputs, n, g, l.outputs, l.x, l.inputs, 0, l.weightGradient, l.inputs)
	clear(l.biasGradient)
	for i := range n {
		add(l.biasGradient, g[i*l.outputs:(i+1)*l.outputs])
	}
	if !need {
		return nil
	}
	inner := l.inner.Of(n * l.inputs)
	blas.Product(false, false, n, l.inputs, l.outputs, g, l.outputs, l.weight, l.inputs, 0, inner, l.inputs)
	return inner
}

// add adds numbers to others, place by place.
func add[T trainer.Number](into, from []T) {
	into = into[:len(from)]
	for len(from) >= 4 {
		a, b := into[:4:4], from[:4:4]
		a[0] += b[0]
		a[1] += b[1]
		a[2] += b[2]
		a[3] += b[3]
		into, from = into[4:], from[4:]
	}
	for i, value := range from {
		into[i] += value
	}
}

// sum adds up numbers in several lanes.
func sum[T trainer.Number](x []T) T {
	var a, b, c, d T
	for len(x) >= 4 {
		four := x[:4:4]
		a += four[0]
		b += four[1]
		c += four[2]
		d += four[3]
		x = x[4:]
	}
	for _, value := range x {
		a += value
	}
	return (a + b) + (c + d)
}
