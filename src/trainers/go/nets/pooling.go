package nets

import (
	"math"

	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// maxPool is the maximum over windows; a tie sends its gradient to the first maximum.
type maxPool[T trainer.Number] struct {
	channels, height, width, outHeight, outWidth int
	size, step, pad                              int
	y, inner                                     number.Buffer[T]
	// Where in its image each maximum was.
	places                    []int32
	team                      *number.Team
	x, g, out                 []T
	n                         int
	forwardPart, backwardPart func(part int)
}

func newMaxPool[T trainer.Number](one plan.Layer, sample shape, team *number.Team) *maxPool[T] {
	p := &maxPool[T]{
		channels: sample[0], height: sample[1], width: sample[2], size: one.Size, step: one.Stride, pad: one.Padding,
		team: team,
	}
	if p.step == 0 {
		p.step = p.size
	}
	if p.size < 1 || p.pad < 0 || p.height+2*p.pad < p.size || p.width+2*p.pad < p.size {
		panic(fault.Bad("maxima over %d x %d with padding %d do not take samples of shape %v", p.size, p.size, p.pad, sample))
	}
	p.outHeight = (p.height+2*p.pad-p.size)/p.step + 1
	p.outWidth = (p.width+2*p.pad-p.size)/p.step + 1
	p.forwardPart, p.backwardPart = p.forwardChannel, p.backwardChannel
	return p
}

// quarters tells the usual case: windows of two by two that do not overlap.
func (p *maxPool[T]) quarters() bool { return p.size == 2 && p.step == 2 && p.pad == 0 }

func (p *maxPool[T]) forward(x []T, n int, _ bool) []T {
	p.x, p.n = x, n
	count := p.channels * n * p.outHeight * p.outWidth
	p.out = p.y.Of(count)
	if count > cap(p.places) {
		p.places = make([]int32, count)
	}
	p.places = p.places[:count]
	p.team.Run(p.channels, len(x), p.forwardPart)
	return p.out
}

func (p *maxPool[T]) forwardChannel(channel int) {
	in, out := p.height*p.width, p.outHeight*p.outWidth
	for image := channel * p.n; image < (channel+1)*p.n; image++ {
		x, y, places := p.x[image*in:(image+1)*in], p.out[image*out:(image+1)*out], p.places[image*out:(image+1)*out]
		if p.quarters() {
			p.maximaOfFour(x, y, places)
		} else {
			p.maxima(x, y, places)
		}
	}
}

// maximaOfFour has no branches that depend on the numbers.
func (p *maxPool[T]) maximaOfFour(x, y []T, places []int32) {
	for row := range p.outHeight {
		at := 2 * row * p.width
		upper, lower := x[at:at+2*p.outWidth], x[at+p.width:at+p.width+2*p.outWidth]
		line, found := y[row*p.outWidth:(row+1)*p.outWidth], places[row*p.outWidth:(row+1)*p.outWidth]
		for i := range line {
			a, b, c, d := upper[2*i], upper[2*i+1], lower[2*i], lower[2*i+1]
			best := max(a, b, c, d)
			place := int32(at + p.width + 2*i + 1)
			if c == best {
				place = int32(at + p.width + 2*i)
			}
			if b == best {
				place = int32(at + 2*i + 1)
			}
			if a == best {
				place = int32(at + 2*i)
			}
			line[i], found[i] = best, place
		}
	}
}

func (p *maxPool[T]) maxima(x, y []T, places []int32) {
	at := 0
	for row := range p.outHeight {
		top := row*p.step - p.pad
		for column := range p.outWidth {
			left := column*p.step - p.pad
			best, place := T(math.Inf(-1)), int32(-1)
			for i := max(0, top); i < min(p.height, top+p.size); i++ {
				for j := max(0, left); j < min(p.width, left+p.size); j++ {
					value := x[i*p.width+j]
					if place < 0 || value > best || number.IsNaN(value) && !number.IsNaN(best) {
						best, place = value, int32(i*p.width+j)
					}
				}
			}
			y[at], places[at] = best, place
			at++
		}
	}
}

func (p *maxPool[T]) backward(g []T, n int, need bool) []T {
	if !need {
		return nil
	}
	p.g, p.n = g, n
	p.out = p.inner.Of(p.channels * n * p.height * p.width)
	p.team.Run(p.channels, len(p.out), p.backwardPart)
	return p.out
}

func (p *maxPool[T]) backwardChannel(channel int) {
	in, out := p.height*p.width, p.outHeight*p.outWidth
	clear(p.out[channel*p.n*in : (channel+1)*p.n*in])
	for image := channel * p.n; image < (channel+1)*p.n; image++ {
		inner := p.out[image*in : (image+1)*in]
		places := p.places[image*out : (image+1)*out]
		for i, value := range p.g[image*out : (image+1)*out] {
			// A window that lies in the padding alone has no place.
			if place := places[i]; place >= 0 {
				inner[place] += value
			}
		}
	}
}

// averagePool is the mean over height and width: (channels, n, area) becomes (n, channels).
type averagePool[T trainer.Number] struct {
	channels, area int
	y, inner       number.Buffer[T]
}

func (p *averagePool[T]) forward(x []T, n int, _ bool) []T {
	y := p.y.Of(n * p.channels)
	for channel := range p.channels {
		for i := range n {
			at := (channel*n + i) * p.area
			y[i*p.channels+channel] = T(wideSum(x[at:at+p.area]) / float64(p.area))
		}
	}
	return y
}

func (p *averagePool[T]) backward(g []T, n int, need bool) []T {
	if !need {
		return nil
	}
	inner := p.inner.Of(p.channels * n * p.area)
	for channel := range p.channels {
		for i := range n {
			at := (channel*n + i) * p.area
			fill(inner[at:at+p.area], g[i*p.channels+channel]/T(p.area))
		}
	}
	return inner
}
