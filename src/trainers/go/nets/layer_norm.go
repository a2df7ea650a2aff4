package nets

import (
	"math"

	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// layerNorm normalises each sample over its features; it has no parameters. What it returns may be written over by the
// next layer, so it keeps what it needs to go back.
type layerNorm[T trainer.Number] struct {
	features, rows            int
	epsilon                   T
	y, normal, scale          number.Buffer[T]
	team                      *number.Team
	from, to, kept, scales    []T
	forwardPart, backwardPart func(part int)
}

func newLayerNorm[T trainer.Number](one plan.Layer, team *number.Team) *layerNorm[T] {
	l := &layerNorm[T]{features: one.Features, rows: max(1, chunk/one.Features), epsilon: T(one.Epsilon), team: team}
	l.forwardPart = func(part int) { l.each(part, l.forwardSample) }
	l.backwardPart = func(part int) { l.each(part, l.backwardSample) }
	return l
}

func (l *layerNorm[T]) each(part int, run func(sample int)) {
	for i := part * l.rows; i < min((part+1)*l.rows, len(l.scales)); i++ {
		run(i)
	}
}

func (l *layerNorm[T]) row(x []T, sample int) []T { return x[sample*l.features:][:l.features] }

func (l *layerNorm[T]) run(to, from []T, n int, part func(part int)) []T {
	l.to, l.from = to, from
	l.team.Run((n+l.rows-1)/l.rows, len(from), part)
	return to
}

func (l *layerNorm[T]) forward(x []T, n int, _ bool) []T {
	l.kept, l.scales = l.normal.Of(len(x)), l.scale.Of(n)
	return l.run(l.y.Of(len(x)), x, n, l.forwardPart)
}

func (l *layerNorm[T]) forwardSample(sample int) {
	x, normal := l.row(l.from, sample), l.row(l.kept, sample)
	mean := T(wideSum(x) / float64(l.features))
	squares := 0.0
	for i, value := range x {
		normal[i] = value - mean
		squares += float64(normal[i]) * float64(normal[i])
	}
	scale := 1 / T(math.Sqrt(float64(T(squares/float64(l.features))+l.epsilon)))
	for i := range normal {
		normal[i] *= scale
	}
	l.scales[sample] = scale
	copy(l.row(l.to, sample), normal)
}

func (l *layerNorm[T]) backward(g []T, n int, need bool) []T {
	if !need {
		return nil
	}
	// The outputs are not needed any more: the gradient of the inputs takes their place.
	return l.run(l.y.Of(len(g)), g, n, l.backwardPart)
}

func (l *layerNorm[T]) backwardSample(sample int) {
	g, normal, inner := l.row(l.from, sample), l.row(l.kept, sample), l.row(l.to, sample)
	product := 0.0
	for i, value := range g {
		product += float64(value) * float64(normal[i])
	}
	mean, along := T(wideSum(g)/float64(l.features)), T(product/float64(l.features))
	for i, value := range g {
		inner[i] = l.scales[sample] * (value - mean - T(normal[i]*along))
	}
}
