//go:build mpi

package strategies

import (
	"math"
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/mpi"
	"transect-trainer-go/trainer"
)

// call tells those that come; the first `there` workers are there from now on.
func (s *async[T]) call(there int) error {
	for worker := s.there + 1; worker <= there; worker++ {
		if err := mpi.Send(s.comm, make([]int64, 1), worker, tagCome); err != nil {
			return err
		}
	}
	s.there = there
	return nil
}

// serve takes requests until so many gradients are applied as there are workers.
func (s *async[T]) serve(t trainer.Trainer[T], rate float64) (Times, error) {
	begin, waited := time.Now(), time.Duration(0)
	request := make([]int64, 4)
	for end := s.total + int64(s.workers()); s.total < end; {
		// Not behind the last gradient: who fetches before the next step gets that step's weights.
		if err := s.answer(t); err != nil {
			return Times{}, err
		}
		asked := time.Now()
		message, err := mpi.Recv(s.comm, request, mpi.AnySource, tagRequest)
		if err != nil {
			return Times{}, err
		}
		worker := message.Source
		switch {
		case message.Count != 4 || request[0] != fetch && request[0] != push:
			return Times{}, fault.New(fault.Crash, "rank %d asks for %v: a fetch is 0, a push 1", worker, request[:message.Count])
		case request[0] == fetch:
			s.waiting[worker] = request[2]
			waited += time.Since(asked)
		default:
			if err := received(t.Gradient())(mpi.Recv(s.comm, t.Gradient(), worker, tagGradient)); err != nil {
				return Times{}, err
			}
			waited += time.Since(asked)
			if err := s.apply(t, worker, request, rate); err != nil {
				return Times{}, err
			}
		}
	}
	return Times{
		Loss: math.NaN(), Compute: (time.Since(begin) - waited).Seconds(), Communication: waited.Seconds(),
		UnderWay: math.NaN(),
	}, nil
}

func (s *async[T]) workers() int { return s.comm.Size - 1 }

// apply is an update by one gradient or, with staleness 0, by those of all parts in their order.
func (s *async[T]) apply(t trainer.Trainer[T], worker int, push []int64, rate float64) error {
	gradient, part, step, version := t.Gradient(), push[1], push[2], push[3]
	if s.staleness == 0 {
		one := &s.kept[part]
		one.gradient = append(one.gradient[:0], gradient...)
		one.worker, one.lead = worker, s.lead[worker]
		if s.arrived++; s.arrived < s.workers() {
			return nil
		}
		s.arrived = 0
		clear(gradient)
		for _, one := range s.kept {
			if err := mpi.Add(gradient, one.gradient); err != nil {
				return err
			}
			s.note(one.worker, step, version, one.lead)
		}
		if s.mean {
			count := T(s.workers())
			for i := range gradient {
				gradient[i] /= count
			}
		}
	} else {
		if s.mean {
			rate /= float64(s.workers())
		}
		s.note(worker, step, version, s.lead[worker])
	}
	s.version++
	return t.Update(rate)
}

func (s *async[T]) note(worker int, step, version, lead int64) {
	s.stale, s.leads = append(s.stale, float64(s.version-version)), append(s.leads, float64(lead))
	s.worker = append(s.worker, float64(worker))
	s.total++
	s.applied[step]++
	for s.applied[s.first] == s.workers() {
		delete(s.applied, s.first)
		s.first++
	}
}

// answer sends the weights to all who may have them, worker 1 first.
func (s *async[T]) answer(t trainer.Trainer[T]) error {
	for worker := 1; worker <= s.workers(); worker++ {
		lead := s.waiting[worker] - s.first
		if s.waiting[worker] < 0 || s.staleness != unbounded && lead > int64(s.staleness) {
			continue
		}
		s.waiting[worker], s.lead[worker] = -1, lead
		if err := mpi.Send(s.comm, []int64{s.version}, worker, tagVersion); err != nil {
			return err
		}
		if err := mpi.Send(s.comm, t.Parameters(), worker, tagWeights); err != nil {
			return err
		}
	}
	return nil
}
