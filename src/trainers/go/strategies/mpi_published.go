//go:build mpi

package strategies

import (
	"math"
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/mpi"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() {
	Register("published-allreduce", newPublishedAllreduce[float32], newPublishedAllreduce[float64])
	Register("published-sendrecv", newPublishedSendrecv[float32], newPublishedSendrecv[float64])
}

// published sums changes, learning rate times gradient, without a mean, as training/strategies/published.py.
type published[T trainer.Number] struct{ member[T] }

func newPublished[T trainer.Number](p *plan.Plan) (published[T], error) {
	rule := p.Rule
	switch {
	case p.Cell.Reduce != "sum":
		return published[T]{}, fault.Bad("as published it sums changes and takes no mean: expected reduce sum")
	case rule.Optimiser != "sgd" || rule.Momentum != 0 || rule.WeightDecay != 0:
		return published[T]{}, fault.Bad(
			"as published a change is learning rate times gradient: expected sgd with momentum 0 and weight_decay 0, "+
				"got %s with %g and %g", rule.Optimiser, rule.Momentum, rule.WeightDecay)
	}
	return published[T]{newMember[T](p)}, nil
}

// apply scales this rank's gradient to a change, adds the others' to it, and changes the weights by the sum.
func (s *published[T]) apply(t trainer.Trainer[T], rate float64, add func([]T) error) (float64, error) {
	changes, scale := t.Gradient(), T(rate)
	for i := range changes {
		changes[i] *= scale
	}
	begin := time.Now()
	if s.comm.Size > 1 {
		if err := add(changes); err != nil {
			return 0, err
		}
	}
	waited := time.Since(begin).Seconds()
	// They hold the learning rate.
	return waited, t.Update(1)
}

type publishedAllreduce[T trainer.Number] struct{ published[T] }

func newPublishedAllreduce[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	base, err := newPublished[T](p)
	return &publishedAllreduce[T]{base}, err
}

func (s *publishedAllreduce[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	begin := time.Now()
	loss, err := t.ForwardBackward(b)
	if err != nil {
		return Times{}, err
	}
	waited, err := s.apply(t, rate, func(changes []T) error { return mpi.Allreduce(s.comm, changes) })
	return Times{
		Loss: loss, Compute: time.Since(begin).Seconds() - waited, Communication: waited, UnderWay: waited,
	}, err
}

// publishedSendrecv has a rank 0 that does not train: it receives, adds, and sends back.
type publishedSendrecv[T trainer.Number] struct {
	published[T]
	incoming number.Buffer[T]
}

func newPublishedSendrecv[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	base, err := newPublished[T](p)
	if err == nil && p.Cell.Ranks() < 2 {
		err = fault.Bad("rank 0 does not train: expected at least 2 ranks")
	}
	return &publishedSendrecv[T]{published: base}, err
}

func (s *publishedSendrecv[T]) Trains() bool { return s.comm.Rank > 0 }

func (s *publishedSendrecv[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	begin := time.Now()
	loss := math.NaN()
	if s.Trains() {
		var err error
		if loss, err = t.ForwardBackward(b); err != nil {
			return Times{}, err
		}
	}
	waited, err := s.apply(t, rate, func(changes []T) error {
		if s.comm.Rank == 0 {
			// Whatever lies in it is no change of this rank's.
			if err := received(changes)(mpi.Recv(s.comm, changes, 1, 0)); err != nil {
				return err
			}
		}
		return throughRoot(s.comm, changes, s.incoming.Of(len(changes)), 2)
	})
	return Times{
		Loss: loss, Compute: time.Since(begin).Seconds() - waited, Communication: waited, UnderWay: waited,
	}, err
}
