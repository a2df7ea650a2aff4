package nets

import (
	"math"
	"unsafe"

	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

// activation computes place by place. It writes over its input and over the gradient that it is given,
// unless others need these too.
type activation[T trainer.Number] struct {
	place         where
	there         func(y, x []T)
	back          func(inner, g, y []T)
	y, inner      number.Buffer[T]
	team          *number.Team
	from, to, own []T
	forwardPart   func(part int)
	backwardPart  func(part int)
}

func newActivation[T trainer.Number](
	team *number.Team, place where, there func(y, x []T), back func(inner, g, y []T),
) *activation[T] {
	a := &activation[T]{place: place, there: there, back: back, team: team}
	a.forwardPart = func(part int) {
		first, last := part*chunk, min((part+1)*chunk, len(a.from))
		a.there(a.to[first:last], a.from[first:last])
	}
	a.backwardPart = func(part int) {
		first, last := part*chunk, min((part+1)*chunk, len(a.from))
		a.back(a.to[first:last], a.from[first:last], a.own[first:last])
	}
	return a
}

func (a *activation[T]) run(to, from []T, part func(part int)) []T {
	a.to, a.from = to, from
	a.team.Run((len(from)+chunk-1)/chunk, len(from), part)
	return to
}

func (a *activation[T]) forward(x []T, _ int, _ bool) []T {
	y := x
	if a.place.first {
		y = a.y.Of(len(x))
	}
	a.own = a.run(y, x, a.forwardPart)
	return y
}

func (a *activation[T]) backward(g []T, _ int, need bool) []T {
	if !need {
		return nil
	}
	inner := g
	if a.place.last {
		inner = a.inner.Of(len(g))
	}
	return a.run(inner, g, a.backwardPart)
}

func newReLU[T trainer.Number](_ shape, team *number.Team, place where) *activation[T] {
	return newActivation(team, place, rectify[T], rectifyBack[T])
}

func rectify[T trainer.Number](y, x []T) {
	y = y[:len(x)]
	for i, value := range x {
		y[i] = max(value, 0)
	}
}

// rectifyBack lets through what was above zero. Outputs are zero or above, so their bits tell; a branch would
// be guessed wrongly every other time.
func rectifyBack[T trainer.Number](inner, g, y []T) {
	if number.Size[T]() == 4 {
		to, from, own := bits[uint32](inner), bits[uint32](g), bits[uint32](y)
		from, own = from[:len(to)], own[:len(to)]
		for i := range to {
			to[i] = from[i] & uint32(int32(own[i]|-own[i])>>31)
		}
		return
	}
	to, from, own := bits[uint64](inner), bits[uint64](g), bits[uint64](y)
	from, own = from[:len(to)], own[:len(to)]
	for i := range to {
		to[i] = from[i] & uint64(int64(own[i]|-own[i])>>63)
	}
}

func bits[B uint32 | uint64, T trainer.Number](x []T) []B {
	return unsafe.Slice((*B)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func newSigmoid[T trainer.Number](_ shape, team *number.Team, place where) *activation[T] {
	return newActivation(team, place, squash[T], squashBack[T])
}

// squash takes the exponential of negative numbers only: no overflow for either sign.
func squash[T trainer.Number](y, x []T) {
	y = y[:len(x)]
	for i, value := range x {
		z := T(math.Exp(-math.Abs(float64(value))))
		if value >= 0 {
			y[i] = 1 / (1 + z)
		} else {
			y[i] = z / (1 + z)
		}
	}
}

func squashBack[T trainer.Number](inner, g, y []T) {
	g, y = g[:len(inner)], y[:len(inner)]
	for i := range inner {
		inner[i] = T(g[i]*y[i]) * (1 - y[i])
	}
}
