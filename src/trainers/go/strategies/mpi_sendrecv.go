//go:build mpi

package strategies

import (
	"transect-trainer-go/fault"
	"transect-trainer-go/mpi"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() { Register("mpi-sendrecv", newSendrecv[float32], newSendrecv[float64]) }

// sendrecv has rank 0 receive gradients in rank order, add them to its own, and send the sum back.
type sendrecv[T trainer.Number] struct {
	member[T]
	incoming number.Buffer[T]
}

func newSendrecv[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	return &sendrecv[T]{member: newMember[T](p)}, nil
}

func (s *sendrecv[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	return s.step(t, b, rate, func(flat []T) error {
		return throughRoot(s.comm, flat, s.incoming.Of(len(flat)), 1)
	})
}

// throughRoot adds what ranks from `first` on have to rank 0's flat, which all get back.
func throughRoot[T trainer.Number](comm mpi.Comm, flat, incoming []T, first int) error {
	if comm.Rank > 0 {
		if err := mpi.Send(comm, flat, 0, 0); err != nil {
			return err
		}
		return received(flat)(mpi.Recv(comm, flat, 0, 0))
	}
	for from := first; from < comm.Size; from++ {
		if err := received(incoming)(mpi.Recv(comm, incoming, from, 0)); err != nil {
			return err
		}
		if err := mpi.Add(flat, incoming); err != nil {
			return err
		}
	}
	for to := 1; to < comm.Size; to++ {
		if err := mpi.Send(comm, flat, to, 0); err != nil {
			return err
		}
	}
	return nil
}

// received fails where a message is not as long as what it is for.
func received[T trainer.Number](wanted []T) func(mpi.Message, error) error {
	return func(message mpi.Message, err error) error {
		if err == nil && message.Count != len(wanted) {
			return fault.New(fault.Crash, "rank %d sent %d numbers, expected %d", message.Source, message.Count, len(wanted))
		}
		return err
	}
}
