package nets

import (
	"math"

	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// batchNorm normalises each channel: in training by the batch's mean and variance, which also move the
// running ones, in prediction by these.
type batchNorm[T trainer.Number] struct {
	channels, area                                   int
	momentum, epsilon                                T
	weight, bias, weightGradient, biasGradient       []T
	runningMean, runningVariance                     []T
	scale                                            []T
	y, normal                                        number.Buffer[T]
	team                                             *number.Team
	x, g, out, kept                                  []T
	n                                                int
	forwardPart, predictPart, backwardPart, sumsPart func(part int)
}

func newBatchNorm[T trainer.Number](one plan.Layer, sample shape, b *binder[T]) *batchNorm[T] {
	l := &batchNorm[T]{
		channels: one.Channels, area: sample[1] * sample[2], momentum: T(one.Momentum), epsilon: T(one.Epsilon),
		scale: make([]T, one.Channels), team: b.team,
	}
	l.weight, l.weightGradient = b.take(one.Channels, "a batch norm's weight")
	l.bias, l.biasGradient = b.take(one.Channels, "a batch norm's bias")
	l.runningMean, _ = b.take(one.Channels, "a batch norm's running mean")
	l.runningVariance, _ = b.take(one.Channels, "a batch norm's running variance")
	l.forwardPart, l.predictPart = l.forwardChannel, l.predictChannel
	l.backwardPart, l.sumsPart = l.backwardChannel, l.sumsChannel
	return l
}

func (l *batchNorm[T]) forward(x []T, n int, training bool) []T {
	l.x, l.n = x, n
	l.out = l.y.Of(len(x))
	if !training {
		l.team.Run(l.channels, len(x), l.predictPart)
		return l.out
	}
	l.kept = l.normal.Of(len(x))
	l.team.Run(l.channels, len(x), l.forwardPart)
	return l.out
}

// inverse is 1 / sqrt(variance + epsilon), rounded as numpy does.
func (l *batchNorm[T]) inverse(variance T) T {
	return 1 / T(math.Sqrt(float64(variance+l.epsilon)))
}

func (l *batchNorm[T]) forwardChannel(channel int) {
	count := l.n * l.area
	x, out, normal := l.row(l.x, channel), l.row(l.out, channel), l.row(l.kept, channel)
	mean := T(wideSum(x) / float64(count))
	squares := 0.0
	for i, value := range x {
		centred := value - mean
		normal[i] = centred
		squares += float64(centred) * float64(centred)
	}
	variance := T(squares / float64(count))
	l.runningMean[channel] += T(l.momentum * (mean - l.runningMean[channel]))
	sample := T(variance * T(float64(count)/float64(max(1, count-1))))
	l.runningVariance[channel] += T(l.momentum * (sample - l.runningVariance[channel]))
	scale := l.inverse(variance)
	l.scale[channel] = scale
	weight, bias := l.weight[channel], l.bias[channel]
	for i, value := range normal {
		value *= scale
		normal[i] = value
		out[i] = T(value*weight) + bias
	}
}

func (l *batchNorm[T]) predictChannel(channel int) {
	x, out := l.row(l.x, channel), l.row(l.out, channel)
	mean, scale := l.runningMean[channel], l.inverse(l.runningVariance[channel])
	weight, bias := l.weight[channel], l.bias[channel]
	for i, value := range x {
		out[i] = T(T((value-mean)*scale)*weight) + bias
	}
}

func (l *batchNorm[T]) row(x []T, channel int) []T {
	return x[channel*l.n*l.area : (channel+1)*l.n*l.area]
}

func (l *batchNorm[T]) backward(g []T, n int, need bool) []T {
	l.g, l.n = g, n
	if !need {
		l.team.Run(l.channels, len(g), l.sumsPart)
		return nil
	}
	// The outputs are not needed any more: the gradient of the inputs takes their place.
	l.out = l.y.Of(len(g))
	l.team.Run(l.channels, len(g), l.backwardPart)
	return l.out
}

func (l *batchNorm[T]) sumsChannel(channel int) {
	g, normal := l.row(l.g, channel), l.row(l.kept, channel)
	forWeight := 0.0
	for i, value := range g {
		forWeight += float64(value) * float64(normal[i])
	}
	l.biasGradient[channel] = T(wideSum(g))
	l.weightGradient[channel] = T(forWeight)
}

func (l *batchNorm[T]) backwardChannel(channel int) {
	l.sumsChannel(channel)
	g, normal, out := l.row(l.g, channel), l.row(l.kept, channel), l.row(l.out, channel)
	count := T(l.n * l.area)
	bias, weight := l.biasGradient[channel]/count, l.weightGradient[channel]/count
	scale := l.weight[channel] * l.scale[channel]
	for i, value := range g {
		out[i] = scale * (value - bias - T(normal[i]*weight))
	}
}

// wideSum adds up in float64, in several lanes.
func wideSum[T trainer.Number](x []T) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		four := x[:4:4]
		a += float64(four[0])
		b += float64(four[1])
		c += float64(four[2])
		d += float64(four[3])
		x = x[4:]
	}
	for _, value := range x {
		a += float64(value)
	}
	return (a + b) + (c + d)
}
