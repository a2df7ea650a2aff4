//go:build mpi

package strategies

import (
	"hash/crc32"
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
	tagRequest, tagGradient, tagVersion, tagWeights, tagCome = 1, 2, 4, 5, 6
	fetch, push                                              = 0, 1
	unbounded                                                = -1
	// Between two looks of a worker that is away.
	look = time.Millisecond
)

// arrived is a gradient that waits for those of the step's other parts.
type arrived[T trainer.Number] struct {
	gradient []T
	worker   int
	lead     int64
}

// async is a parameter server on rank 0, and workers that may be some steps apart.
type async[T trainer.Number] struct {
	member[T]
	staleness int
	ledger    map[string]any
	// Of a worker: steps done, gradients sent, and whether it was away in the last step.
	step, sent int64
	away       bool
	// Of the server, by worker: the step of a fetch that waits (-1: none), and its lead when it got its weights.
	waiting, lead []int64
	// By part, and how many there are.
	kept    []arrived[T]
	arrived int
	// Gradients applied: in all, and in each step from the first one on that is not complete.
	total, first int64
	applied      map[int64]int
	version      int64
	// How many workers are there.
	there int
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
	s.waiting, s.lead = make([]int64, place.Size), make([]int64, place.Size)
	for rank := range s.waiting {
		s.waiting[rank] = -1
	}
	s.kept, s.applied, s.there = make([]arrived[T], s.workers()), map[int64]int{}, s.workers()
	return place, err
}

func (s *async[T]) Trains() bool { return s.comm.Rank > 0 }

// EndEpoch lets ranks go on: a worker waits for no test but at its next request.
func (s *async[T]) EndEpoch() error { return nil }

func (s *async[T]) Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error) {
	if s.comm.Rank == 0 {
		return s.serve(t, rate)
	}
	defer func() { s.step++ }()
	return s.compute(t, b, s.comm.Rank-1)
}

// Deal is a step where workers come and go. A worker's loss is the sum of its parts'.
func (s *async[T]) Deal(
	t trainer.Trainer[T], step int, parts []int, next func() trainer.Batch[T], rate float64,
) (Times, error) {
	if s.comm.Rank == 0 {
		if err := s.call(s.plan.There(step)); err != nil {
			return Times{}, err
		}
		return s.serve(t, rate)
	}
	defer func() { s.step++ }()
	if len(parts) == 0 {
		s.away = true
		return Times{}, nil
	}
	if err := s.come(); err != nil {
		return Times{}, err
	}
	sum := Times{}
	for _, part := range parts {
		one, err := s.compute(t, next(), part)
		if err != nil {
			return Times{}, err
		}
		sum.Loss, sum.Compute = sum.Loss+one.Loss, sum.Compute+one.Compute
		sum.Communication, sum.UnderWay = sum.Communication+one.Communication, sum.UnderWay+one.UnderWay
	}
	return sum, nil
}

// come waits until the server calls, where this worker was away; asleep, as others may need its core.
func (s *async[T]) come() error {
	if !s.away {
		return nil
	}
	s.away = false
	for {
		_, there, err := s.comm.Iprobe(0, tagCome)
		if err != nil {
			return err
		}
		if there {
			_, err := mpi.Recv(s.comm, make([]int64, 1), 0, tagCome)
			return err
		}
		time.Sleep(look)
	}
}

// compute is a worker's gradient of one part.
func (s *async[T]) compute(t trainer.Trainer[T], b trainer.Batch[T], part int) (Times, error) {
	begin := time.Now()
	version := make([]int64, 1)
	if err := s.ask(fetch, part, 0); err != nil {
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
	if err := s.ask(push, part, version[0]); err != nil {
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

func (s *async[T]) ask(what int64, part int, version int64) error {
	return mpi.Send(s.comm, []int64{what, int64(part), s.step, version}, 0, tagRequest)
}

// Finish gives all ranks the server's weights, and notes a checksum of what each ends with.
func (s *async[T]) Finish(t trainer.Trainer[T]) error {
	if s.comm.Rank == 0 {
		s.ledger["gradients_applied"], s.ledger["updates"] = s.total, s.version
		if err := s.call(s.workers()); err != nil {
			return err
		}
	} else {
		s.ledger["gradients_sent"] = s.sent
		if err := s.come(); err != nil {
			return err
		}
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
