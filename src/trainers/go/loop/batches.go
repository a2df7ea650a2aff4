package loop

import (
	"encoding/binary"
	"math"

	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// samples are inputs as a model takes them, in its precision: stored in memory, or bytes of images that are
// normalised when they are read.
type samples[T trainer.Number] struct {
	size   int
	stored []T
	bytes  []byte
	// Of images: a sample is byte * scale - shift, per channel.
	scale, shift []T
}

// readSamples brings an array to the precision once, unless it is one of bytes.
func readSamples[T trainer.Number](array *plan.Array, data *plan.Data) (*samples[T], error) {
	if len(array.Shape) < 2 {
		return nil, fault.Bad("%s: samples have shape %v", array.File, array.Shape)
	}
	read := &samples[T]{size: array.Row()}
	bytes, err := array.Bytes()
	if err != nil {
		return nil, err
	}
	switch array.Dtype {
	case "float64":
		read.stored = number.Make[T](array.Count())
		for i := range read.stored {
			read.stored[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(bytes[8*i:])))
		}
	case "float32":
		read.stored = number.Make[T](array.Count())
		for i := range read.stored {
			read.stored[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
	case "uint8":
		if data.Mean == nil || data.Deviation == nil || len(array.Shape) != 4 {
			return nil, fault.Bad("%s: images as bytes come with mean and deviation, as (n, channels, height, width)", array.File)
		}
		mean, err := data.Mean.Floats()
		if err != nil {
			return nil, err
		}
		deviation, err := data.Deviation.Floats()
		if err != nil {
			return nil, err
		}
		if len(mean) != array.Shape[1] || len(deviation) != array.Shape[1] {
			return nil, fault.Bad("%s: %d channels, but %d means and %d deviations", array.File, array.Shape[1], len(mean), len(deviation))
		}
		for i := range mean {
			read.scale = append(read.scale, T(1/(255*deviation[i])))
			read.shift = append(read.shift, T(mean[i]/deviation[i]))
		}
		read.bytes = bytes
	default:
		return nil, fault.Bad("%s: samples of %s are not known", array.File, array.Dtype)
	}
	return read, nil
}

// write puts sample `which` at its place.
func (s *samples[T]) write(into []T, which int64) {
	if s.bytes == nil {
		copy(into, s.stored[int(which)*s.size:(int(which)+1)*s.size])
		return
	}
	bytes := s.bytes[int(which)*s.size : (int(which)+1)*s.size]
	area := s.size / len(s.scale)
	for channel, scale := range s.scale {
		shift := s.shift[channel]
		plane := into[channel*area : (channel+1)*area]
		for i, value := range bytes[channel*area : (channel+1)*area] {
			plane[i] = T(T(value)*scale) - shift
		}
	}
}

// source knows this rank's parts of every step's batch.
type source[T trainer.Number] struct {
	plan *plan.Plan
	// The parts of a step that are this rank's, and the samples of one.
	parts     func(step int) []int
	size      int
	x         *samples[T]
	labels    []int64
	perSample int
	order     []int64
	columns   int
	// Of the synthetic twin: how many batches it goes round; 0 for data.
	round int
}

// newSource reads what batches are made of; a batch is cut in `count` parts.
func newSource[T trainer.Number](p *plan.Plan, parts func(step int) []int, count int) (*source[T], error) {
	s := &source[T]{plan: p, parts: parts, size: p.Cell.Batch / count, columns: p.Order.Shape[1]}
	x, y := p.Data.XTrain, p.Data.YTrain
	switch p.Cell.Input {
	case "stored":
	case "synthetic":
		// (batches, batch, ...) is as good as one long list of samples.
		x, y = p.Data.XSynthetic, p.Data.YSynthetic
		if len(x.Shape) < 3 || x.Shape[1] != p.Cell.Batch || x.Shape[0] < 1 {
			return nil, fault.Bad("x_synthetic has shape %v, expected (batches, %d, ...)", x.Shape, p.Cell.Batch)
		}
		s.round = x.Shape[0]
		flat := *x
		flat.Shape = append([]int{x.Shape[0] * x.Shape[1]}, x.Shape[2:]...)
		x = &flat
	default:
		return nil, fault.Bad("input %q is neither stored nor synthetic", p.Cell.Input)
	}
	var err error
	if s.x, err = readSamples[T](x, &p.Data); err != nil {
		return nil, err
	}
	if s.labels, err = y.Integers(); err != nil {
		return nil, err
	}
	if len(s.labels) == 0 || len(s.labels)%x.Shape[0] != 0 {
		return nil, fault.Bad("%d labels of %d samples", len(s.labels), x.Shape[0])
	}
	s.perSample = len(s.labels) / x.Shape[0]
	if s.order, err = p.Order.Integers(); err != nil {
		return nil, err
	}
	if s.round == 0 {
		for _, which := range s.order {
			if which < 0 || which >= int64(x.Shape[0]) {
				return nil, fault.Bad("order names sample %d of %d", which, x.Shape[0])
			}
		}
	}
	return s, nil
}

// fill writes a part of a step's batch.
func (s *source[T]) fill(step, part int, x []T, labels []int64) {
	for i := range s.size {
		var which int64
		if s.round > 0 {
			which = int64(step%s.round*s.plan.Cell.Batch + part*s.size + i)
		} else {
			epoch, inside := step/s.plan.StepsPerEpoch, step%s.plan.StepsPerEpoch
			which = s.order[epoch*s.columns+inside*s.plan.Cell.Batch+part*s.size+i]
		}
		s.x.write(x[i*s.x.size:(i+1)*s.x.size], which)
		copy(labels[i*s.perSample:(i+1)*s.perSample], s.labels[int(which)*s.perSample:])
	}
}

// one returns a part of a step's batch, made on the spot.
func (s *source[T]) one(step, part int) trainer.Batch[T] {
	x, labels := make([]T, s.size*s.x.size), make([]int64, s.size*s.perSample)
	s.fill(step, part, x, labels)
	return trainer.Batch[T]{N: s.size, X: x, Labels: labels}
}
