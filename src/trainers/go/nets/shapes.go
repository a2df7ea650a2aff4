package nets

import (
	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
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

// branches are chains from one input, whose images are joined along channels: as these lie, one after another.
type branches[T trainer.Number] struct {
	parts    []*chain[T]
	channels []int
	before   int
	after    shape
	y, inner number.Buffer[T]
}

func newBranches[T trainer.Number](one plan.Layer, sample shape, b *binder[T]) *branches[T] {
	made := &branches[T]{before: sample.numbers()}
	for _, layers := range one.Branches {
		part, end := build(layers, sample, b)
		if len(made.parts) == 0 {
			made.after = append(shape(nil), end...)
		} else if len(end) == 3 && len(made.after) == 3 && end[1] == made.after[1] && end[2] == made.after[2] {
			made.after[0] += end[0]
		} else {
			panic(fault.Bad("branches end in %v and %v, not in images of one size", made.after, end))
		}
		made.parts, made.channels = append(made.parts, part), append(made.channels, end[0])
	}
	if len(made.after) != 3 {
		panic(fault.Bad("branches end in %v, not in images", made.after))
	}
	return made
}

// size is how many numbers of n samples the branch makes.
func (b *branches[T]) size(branch, n int) int {
	return b.channels[branch] * n * b.after[1] * b.after[2]
}

func (b *branches[T]) forward(x []T, n int, training bool) []T {
	y := b.y.Of(n * b.after.numbers())
	rest := y
	for i, part := range b.parts {
		copy(rest, part.forward(x, n, training))
		rest = rest[b.size(i, n):]
	}
	return y
}

func (b *branches[T]) backward(g []T, n int, need bool) []T {
	var inner []T
	if need {
		inner = b.inner.Of(n * b.before)
		clear(inner)
	}
	// The last branch's weights are the model's later ones: gradients are ready from the end on.
	for i := len(b.parts) - 1; i >= 0; i-- {
		start := len(g) - b.size(i, n)
		if found := b.parts[i].backward(g[start:], n, need); need {
			add(inner, found)
		}
		g = g[:start]
	}
	return inner
}
