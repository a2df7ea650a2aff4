package loop

import (
	"slices"
	"time"

	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

// Handing a batch from one goroutine to another costs microseconds, as much as a small step: small batches go
// several at a time.
const (
	unitBytes = 1 << 15
	unitSteps = 32
	units     = 2
)

// wanted is a part of a step's batch.
type wanted struct{ step, part int }

// unit holds batches that follow one another.
type unit[T trainer.Number] struct {
	x       []T
	labels  []int64
	count   int
	seconds float64
	// What the goroutine panicked with, if it did.
	failed any
}

// prepare makes the batches that are wanted.
func (u *unit[T]) prepare(s *source[T], those []wanted) {
	defer func() { u.failed = recover() }()
	begin := time.Now()
	numbers, labels := s.size*s.x.size, s.size*s.perSample
	u.count = len(those)
	for i, one := range those {
		s.fill(one.step, one.part, u.x[i*numbers:(i+1)*numbers], u.labels[i*labels:(i+1)*labels])
	}
	u.seconds = time.Since(begin).Seconds()
}

// ahead prepares batches by a goroutine of its own while steps run.
type ahead[T trainer.Number] struct {
	source      *source[T]
	ready, free chan *unit[T]
	now         *unit[T]
	at          int
	// Seconds that preparing took.
	Preparing float64
}

func newAhead[T trainer.Number](s *source[T], steps int) *ahead[T] {
	numbers := s.size * s.x.size
	each := min(unitSteps, max(1, unitBytes/(numbers*number.Size[T]())))
	a := &ahead[T]{source: s, ready: make(chan *unit[T], units), free: make(chan *unit[T], units+1)}
	for range units + 1 {
		a.free <- &unit[T]{x: number.Make[T](each * numbers), labels: make([]int64, each*s.size*s.perSample)}
	}
	var all []wanted
	for step := range steps {
		for _, part := range s.parts(step) {
			all = append(all, wanted{step, part})
		}
	}
	go func() {
		for those := range slices.Chunk(all, each) {
			one := <-a.free
			one.prepare(s, those)
			a.ready <- one
		}
	}()
	return a
}

// next returns the next batch, which stays until the one after it is asked for.
func (a *ahead[T]) next() trainer.Batch[T] {
	if a.now != nil && a.at == a.now.count {
		a.free <- a.now
		a.now = nil
	}
	if a.now == nil {
		a.now, a.at = <-a.ready, 0
		if a.now.failed != nil {
			panic(a.now.failed)
		}
		a.Preparing += a.now.seconds
	}
	s, i := a.source, a.at
	a.at++
	numbers, labels := s.size*s.x.size, s.size*s.perSample
	return trainer.Batch[T]{N: s.size, X: a.now.x[i*numbers : (i+1)*numbers], Labels: a.now.labels[i*labels : (i+1)*labels]}
}
