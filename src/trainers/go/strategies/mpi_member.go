//go:build mpi

package strategies

import (
	"time"

	"transect-trainer-go/mpi"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/rules"
	"transect-trainer-go/trainer"
)

// member is one of the ranks of MPI_COMM_WORLD. It makes the calls of training/strategies/_mpi.py in their order,
// so that ranks in either language may meet.
type member[T trainer.Number] struct {
	comm mpi.Comm
	plan *plan.Plan
	// Whether gradients become their mean, not their sum.
	mean bool
}

func newMember[T trainer.Number](p *plan.Plan) member[T] {
	return member[T]{plan: p, mean: p.Cell.Reduce != "sum"}
}

func (m *member[T]) Join() (Place, error) {
	var err error
	if m.comm, err = mpi.Init(); err != nil {
		return Place{}, err
	}
	// Nobody here asks for the rank on its node, but those in Python do, all together.
	_, err = m.comm.LocalRank()
	return Place{Rank: m.comm.Rank, Size: m.comm.Size}, err
}

// Start broadcasts the weights of rank 0, an array at a time.
func (m *member[T]) Start(t trainer.Trainer[T]) error {
	state := trainer.State{Weights: t.Weights()}
	for _, values := range state.Weights {
		rounded := make([]T, len(values))
		number.Round(rounded, values)
		if err := mpi.Bcast(m.comm, rounded, 0); err != nil {
			return err
		}
		number.Round(values, rounded)
	}
	for range rules.Kept(m.plan.Rule.Optimiser) {
		var zeros [][]float64
		for i, values := range state.Weights {
			if m.plan.Weights[i].Trained {
				zeros = append(zeros, make([]float64, len(values)))
			}
		}
		state.States = append(state.States, zeros)
	}
	return t.Resume(state)
}

// divide turns a sum over all ranks into what the cell asks for.
func (m *member[T]) divide(sum []T) {
	if !m.mean {
		return
	}
	count := T(m.comm.Size)
	for i := range sum {
		sum[i] /= count
	}
}

// step computes, adds and updates, one after another.
func (m *member[T]) step(
	t trainer.Trainer[T], b trainer.Batch[T], rate float64, add func([]T) error,
) (Times, error) {
	begin := time.Now()
	loss, err := t.ForwardBackward(b)
	if err != nil {
		return Times{}, err
	}
	computed := time.Now()
	if m.comm.Size > 1 {
		if err := add(t.Gradient()); err != nil {
			return Times{}, err
		}
		m.divide(t.Gradient())
	}
	waited := time.Since(computed).Seconds()
	if err := t.Update(rate); err != nil {
		return Times{}, err
	}
	return Times{
		Loss: loss, Compute: time.Since(begin).Seconds() - waited, Communication: waited, UnderWay: waited,
	}, nil
}

func (m *member[T]) Trains() bool   { return true }
func (m *member[T]) Barrier() error { return m.comm.Barrier() }
func (m *member[T]) Leave() error   { return mpi.Finalize() }

// Abort ends all ranks: they may wait for this one inside a collective.
func (m *member[T]) Abort() { m.comm.Abort(1) }

func (m *member[T]) Libraries() map[string]string { return map[string]string{"mpi": mpi.Library()} }
