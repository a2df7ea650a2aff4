//go:build mpi

package strategies

import (
	"hash/crc32"
	"math"
	"time"
	"unsafe"

	"transect-trainer-go/fault"
	"transect-trainer-go/mpi"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func init() { Register("async", newAsync[float32], newAsync[float64]) }

// Tags and requests of training/strategies/_parameter_server.py, which says what follows what: server and workers
// may be of either language.
const (
	tagRequest, tagGradient, tagVersion, tagWeights = 1, 2, 4, 5
	fetch, push                                     = 0, 1
	unbounded                                       = -1
)

// async is a parameter server on rank 0, and workers that may be some steps apart.
type async[T trainer.Number] struct {
	member[T]
	staleness int
	sent      int64
	ledger    map[string]any
	// Of the server, by worker: gradients applied in all, the step of a fetch that waits (-1: none), the
	// gradient that waits for the others', and its lead when it got its weights.
	applied, waiting, lead []int64
	kept                   [][]T
	there                  int
	version, total         int64
	// Of each gradient in the order of application.
	stale, leads, worker []float64
}

func newAsync[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	s := &async[T]{member: newMember[T](p), ledger: map[string]any{}}
	switch told := p.Options["staleness"].(type) {
	case float64:
		s.staleness = int(told)
	case string:
		s.staleness = unbounded
	default:
		return nil, fault.Bad("async takes a staleness, a whole number or unbounded, got %v", told)
	}
	if p.Cell.Ranks() < 2 {
		return nil, fault.Bad("rank 0 is the server and trains nothing: it takes at least 2 ranks")
	}
	for _, weight := range p.Weights {
		if !weight.Trained {
			return nil, fault.Bad("the server in Go keeps no statistics of batch norms, such as %s", weight.Name)
		}
	}
	return s, nil
}

func (s *async[T]) Join() (Place, error) {
	place, err := s.member.Join()
	s.applied, s.waiting, s.lead = make([]int64, place.Size), make([]int64, place.Size), make([]int64, place.Size)
	for rank := range s.waiting {
		s.waiting[rank] = -1
	}
	s.kept = make([][]T, place.Size)
	return place, err
}

func (s *async[T]) Trains() bool { return s.comm.Rank > 0 }

// EndEpoch lets ranks go on: a worker waits for no test but at its next request.
func (s *async[T]) EndEpoch() error { return nil }

func (s *async[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	if s.comm.Rank == 0 {
		return s.serve(t, rate)
	}
	begin := time.Now()
	version := make([]int64, 1)
	if err := s.ask(fetch, 0); err != nil {
		return Times{}, err
	}
	if _, err := mpi.Recv(s.comm, version, 0, tagVersion); err != nil {
		return Times{}, err
	}
	if err := received(t.Parameters())(mpi.Recv(s.comm, t.Parameters(), 0, tagWeights)); err != nil {
		return Times{}, err
	}
	fetched := time.Now()
	loss, err := t.ForwardBackward(b)
	if err != nil {
		return Times{}, err
	}
	computed := time.Now()
	if err := s.ask(push, version[0]); err != nil {
		return Times{}, err
	}
	if err := mpi.Send(s.comm, t.Gradient(), 0, tagGradient); err != nil {
		return Times{}, err
	}
	s.sent++
	waited := (time.Since(computed) + fetched.Sub(begin)).Seconds()
	return Times{
		Loss: loss, Compute: computed.Sub(fetched).Seconds(), Communication: waited, UnderWay: waited,
	}, nil
}

func (s *async[T]) ask(what, version int64) error {
	return mpi.Send(s.comm, []int64{what, s.sent, version}, 0, tagRequest)
}

// serve takes requests until so many gradients are applied as there are workers.
func (s *async[T]) serve(t trainer.Trainer[T], rate float64) (Times, error) {
	begin, waited := time.Now(), time.Duration(0)
	request := make([]int64, 3)
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
		case message.Count != 3 || request[0] != fetch && request[0] != push:
			return Times{}, fault.New(fault.Crash, "rank %d asks for %v: a fetch is 0, a push 1", worker, request[:message.Count])
		case request[0] == fetch:
			s.waiting[worker] = request[1]
			waited += time.Since(asked)
		default:
			if err := received(t.Gradient())(mpi.Recv(s.comm, t.Gradient(), worker, tagGradient)); err != nil {
				return Times{}, err
			}
			waited += time.Since(asked)
			if err := s.apply(t, worker, request[2], rate); err != nil {
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

// apply is an update by one gradient or, with staleness 0, by those of all workers in the order of ranks.
func (s *async[T]) apply(t trainer.Trainer[T], worker int, version int64, rate float64) error {
	gradient := t.Gradient()
	if s.staleness == 0 {
		s.kept[worker] = append(s.kept[worker][:0], gradient...)
		if s.there++; s.there < s.workers() {
			return nil
		}
		s.there = 0
		clear(gradient)
		for one := 1; one <= s.workers(); one++ {
			if err := mpi.Add(gradient, s.kept[one]); err != nil {
				return err
			}
			s.note(one, version)
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
		s.note(worker, version)
	}
	s.version++
	return t.Update(rate)
}

func (s *async[T]) note(worker int, version int64) {
	s.stale, s.leads = append(s.stale, float64(s.version-version)), append(s.leads, float64(s.lead[worker]))
	s.worker = append(s.worker, float64(worker))
	s.applied[worker]++
	s.total++
}

// answer sends the weights to all who may have them, worker 1 first.
func (s *async[T]) answer(t trainer.Trainer[T]) error {
	slowest := s.applied[1]
	for _, count := range s.applied[1:] {
		slowest = min(slowest, count)
	}
	for worker := 1; worker <= s.workers(); worker++ {
		lead := s.waiting[worker] - slowest
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

// Finish gives all ranks the server's weights, and notes a checksum of what each ends with.
func (s *async[T]) Finish(t trainer.Trainer[T]) error {
	if s.comm.Rank == 0 {
		s.ledger["gradients_applied"], s.ledger["updates"] = s.total, s.version
	} else {
		s.ledger["gradients_sent"] = s.sent
	}
	err := mpi.Bcast(s.comm, t.Parameters(), 0)
	weights := t.Parameters()
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(weights))), len(weights)*number.Size[T]())
	s.ledger["weights_crc32"] = crc32.ChecksumIEEE(bytes)
	return err
}

// Series are, for each gradient in the order of application, its staleness, its lead and its worker.
func (s *async[T]) Series() map[string][]float64 {
	if s.comm.Rank > 0 {
		return nil
	}
	return map[string][]float64{"staleness": s.stale, "lead": s.leads, "applied_worker": s.worker}
}

// Details are the rank's role and what it counted.
func (s *async[T]) Details() map[string]any {
	role := "server"
	if s.Trains() {
		role = "worker"
	}
	details := map[string]any{"role": role}
	for name, value := range s.ledger {
		details[name] = value
	}
	return details
}
