package nets

import (
	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

// same is a layer that changes nothing.
type same[T trainer.Number] struct{}

func (same[T]) forward(x []T, _ int, _ bool) []T  { return x }
func (same[T]) backward(g []T, _ int, _ bool) []T { return g }

// flatten turns images, channel by channel, into rows.
type flatten[T trainer.Number] struct {
	channels, area int
	y, inner       number.Buffer[T]
}

func (f *flatten[T]) forward(x []T, n int, _ bool) []T {
	y := f.y.Of(len(x))
	toRows(y, x, f.channels, n, f.area)
	return y
}

func (f *flatten[T]) backward(g []T, n int, need bool) []T {
	if !need {
		return nil
	}
	inner := f.inner.Of(len(g))
	toRows(inner, g, n, f.channels, f.area)
	return inner
}

// toRows exchanges the first two axes of (a, b, area).
func toRows[T trainer.Number](into, from []T, a, b, area int) {
	for i := range a {
		for j := range b {
			to, source := into[(j*a+i)*area:][:area], from[(i*b+j)*area:][:area]
			if area > 8 {
				copy(to, source)
				continue
			}
			for k, value := range source {
				to[k] = value
			}
		}
	}
}

// residual is body(x) + shortcut(x).
type residual[T trainer.Number] struct {
	body, shortcut  *chain[T]
	before, after   int
	y, inner, twin  number.Buffer[T]
	team            *number.Team
	one, other, out []T
	sumPart         func(part int)
}

func newResidual[T trainer.Number](body, shortcut *chain[T], before, after shape, team *number.Team) *residual[T] {
	r := &residual[T]{body: body, shortcut: shortcut, before: before.numbers(), after: after.numbers(), team: team}
	r.sumPart = func(part int) {
		first := part * chunk
		last := min(first+chunk, len(r.out))
		one, other, out := r.one[first:last], r.other[first:last], r.out[first:last]
		for i, value := range one {
			out[i] = value + other[i]
		}
	}
	return r
}

// Numbers of a part where a job is cut anywhere.
const chunk = 1 << 14

func (r *residual[T]) add(into, one, other []T) []T {
	r.out, r.one, r.other = into, one, other[:len(one)]
	r.team.Run((len(into)+chunk-1)/chunk, len(into), r.sumPart)
	return into
}

func (r *residual[T]) forward(x []T, n int, training bool) []T {
	one := r.body.forward(x, n, training)
	other := r.shortcut.forward(x, n, training)
	return r.add(r.y.Of(n*r.after), one, other)
}

func (r *residual[T]) backward(g []T, n int, need bool) []T {
	// The shortcut's weights are the model's later ones: gradients are ready from the end on.
	other := r.shortcut.backward(g, n, need)
	one := r.body.backward(g, n, need)
	if !need {
		return nil
	}
	return r.add(r.inner.Of(n*r.before), one, other)
}
