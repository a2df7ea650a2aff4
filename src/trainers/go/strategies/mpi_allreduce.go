//go:build mpi

package strategies

import (
	"transect-trainer-go/mpi"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() { Register("mpi-allreduce", newAllreduce[float32], newAllreduce[float64]) }

// allreduce sums one flat gradient by MPI_Allreduce, in place.
type allreduce[T trainer.Number] struct{ member[T] }

func newAllreduce[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	return &allreduce[T]{newMember[T](p)}, nil
}

func (s *allreduce[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	return s.step(t, b, rate, func(flat []T) error { return mpi.Allreduce(s.comm, flat) })
}
