package strategies

import (
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() { Register("single", newSingle[float32], newSingle[float64]) }

// single is one rank with nobody to talk to.
type single[T trainer.Number] struct{}

func newSingle[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	if p.Cell.Ranks() != 1 {
		return nil, fault.Bad("single runs on 1 rank, not on %d", p.Cell.Ranks())
	}
	return single[T]{}, nil
}

func (single[T]) Join() (Place, error)           { return Place{Rank: 0, Size: 1}, nil }
func (single[T]) Start(trainer.Trainer[T]) error { return nil }
func (single[T]) Trains() bool                   { return true }
func (single[T]) Barrier() error                 { return nil }
func (single[T]) Leave() error                   { return nil }
func (single[T]) Libraries() map[string]string   { return nil }

// Step is computing and nothing else.
func (single[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	begin := time.Now()
	loss, err := t.ForwardBackward(b)
	if err == nil {
		err = t.Update(rate)
	}
	return Times{Loss: loss, Compute: time.Since(begin).Seconds()}, err
}
