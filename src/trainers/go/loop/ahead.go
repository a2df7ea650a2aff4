package loop

import (
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

// unit holds the batches of consecutive steps.
type unit[T trainer.Number] struct {
	x       []T
	labels  []int64
	steps   int
	seconds float64
	// What the goroutine panicked with, if it did.
	failed any
}

// prepare makes the batches from step `first` on.
func (u *unit[T]) prepare(s *source[T], first int) {
	defer func() { u.failed = recover() }()
	begin := time.Now()
	numbers, labels := s.size*s.x.size, s.size*s.perSample
	for i := range u.steps {
		s.fill(first+i, u.x[i*numbers:(i+1)*numbers], u.labels[i*labels:(i+1)*labels])
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
	go func() {
		for first := 0; first < steps; first += each {
			one := <-a.free
			one.steps = min(each, steps-first)
			one.prepare(s, first)
			a.ready <- one
		}
	}()
	return a
}

// next returns the next step's batch, which stays until the one after it is asked for.
func (a *ahead[T]) next() trainer.Batch[T] {
	if a.now != nil && a.at == a.now.steps {
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
