//go:build mpi

package strategies

import (
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/mpi"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() { Register("mpi-overlap", newOverlap[float32], newOverlap[float64]) }

// overlap sums each layer's gradient by MPI_Iallreduce while the layers before compute theirs, as
// training/strategies/mpi_overlap.py with `reduce: all`.
type overlap[T trainer.Number] struct {
	member[T]
	kind   string
	sleeps bool
	least  int
	// Messages of its own, which may go on beside others.
	own      mpi.Comm
	progress *progress
	// Each message's range of the gradient, the last first, and after which layer it may go.
	parts   []trainer.Range
	after   []int
	flights []*flight
	flat    []T
	fault   error
}

func newOverlap[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	s := &overlap[T]{member: newMember[T](p)}
	reduce, _ := p.Options["reduce"].(string)
	if reduce != "all" {
		return nil, fault.Bad("this program broadcasts no weights before a layer's forward pass: expected reduce all, got %q", reduce)
	}
	wait, _ := p.Options["wait"].(string)
	s.kind, _ = p.Options["progress"].(string)
	least, ok := p.Options["bucket_bytes"].(float64)
	if !ok || s.kind != "none" && s.kind != "test" && s.kind != "thread" || wait != "sleep" && wait != "spin" {
		return nil, fault.Bad("the options of mpi-overlap are not known here: %v", p.Options)
	}
	s.sleeps, s.least = wait == "sleep", int(least)
	return s, nil
}

func (s *overlap[T]) Join() (Place, error) {
	place, err := s.member.Join()
	if err == nil {
		s.own, err = s.comm.Dup()
	}
	return place, err
}

func (s *overlap[T]) Start(t trainer.Trainer[T]) error {
	s.flat = t.Gradient()
	s.cut(t.Layers())
	s.progress = newProgress(s.kind, s.sleeps)
	if s.comm.Size > 1 {
		t.OnReady(s.ready)
	}
	return s.member.Start(t)
}

// cut joins layers, the first ones first, until a message has its least bytes; the last has what is left.
func (s *overlap[T]) cut(layers []trainer.Range) {
	var parts []trainer.Range
	var after []int
	for layer, one := range layers {
		last := len(parts) - 1
		if last < 0 || (parts[last].Last-parts[last].First)*number.Size[T]() >= max(1, s.least) {
			parts, after = append(parts, one), append(after, layer)
		} else {
			parts[last].Last = one.Last
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		s.parts, s.after = append(s.parts, parts[i]), append(s.after, after[i])
	}
}

// ready sends what has become final: backward comes to a message's first layer last.
func (s *overlap[T]) ready(layer int) {
	for s.fault == nil && len(s.flights) < len(s.parts) && s.after[len(s.flights)] >= layer {
		part := s.parts[len(s.flights)]
		data := s.flat[part.First:part.Last]
		one, err := s.progress.queue(len(data)*number.Size[T](), func() (*mpi.Request, error) {
			return mpi.Iallreduce(s.own, data)
		})
		s.flights, s.fault = append(s.flights, one), err
	}
	if s.fault == nil {
		s.fault = s.progress.poll()
	}
}

func (s *overlap[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	begin := time.Now()
	s.flights = s.flights[:0]
	loss, err := t.ForwardBackward(b)
	if err == nil {
		err = s.fault
	}
	if err == nil && s.comm.Size > 1 && len(s.flights) != len(s.parts) {
		err = fault.New(fault.Crash, "the trainer told %d of %d messages ready", len(s.flights), len(s.parts))
	}
	for i, one := range s.flights {
		if err != nil {
			return Times{}, err
		}
		if err = s.progress.wait(one); err == nil {
			s.divide(s.flat[s.parts[i].First:s.parts[i].Last])
		}
	}
	if err == nil {
		err = t.Update(rate)
	}
	waited, underWay := s.progress.finishStep()
	return Times{
		Loss: loss, Compute: time.Since(begin).Seconds() - waited, Communication: waited, UnderWay: underWay,
	}, err
}

func (s *overlap[T]) Leave() error {
	s.progress.close()
	return s.member.Leave()
}

// Details are the options, and the number of messages of a step.
func (s *overlap[T]) Details() map[string]any {
	details := map[string]any{"messages": len(s.parts)}
	for name, value := range s.plan.Options {
		details[name] = value
	}
	return details
}
