//go:build mpi

package strategies

import (
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"transect-trainer-go/mpi"
)

const (
	// Of 1 Gbit/s 125 kB pass in it, which sockets hold; a call costs some microseconds.
	lookPeriod = time.Millisecond
	// So much of what is queued is under way at once, though two at least.
	windowBytes = 1 << 20
	// Shorter waits are not worth a sleep, longer ones than `longestSleep` none more.
	awake, longestSleep = 50 * time.Microsecond, 500 * time.Microsecond
)

// flight is one operation: from when to when it was under way, if that was seen.
type flight struct {
	post       func() (*mpi.Request, error)
	request    *mpi.Request
	bytes      int
	begin, end time.Time
	over, seen bool
}

// progress has the requests of one rank, as training/strategies/_progress.py: who makes the library go on with them
// while the rank computes is nobody (`none`), the rank between two layers (`test`), or a goroutine (`thread`).
type progress struct {
	kind   string
	sleeps bool
	guard  sync.Mutex
	queued []*flight
	going  []*flight
	step   []*flight
	waited time.Duration
	fault  error
	wake   chan struct{}
	done   chan struct{}
}

func newProgress(kind string, sleeps bool) *progress {
	p := &progress{kind: kind, sleeps: sleeps}
	if kind == "thread" {
		p.wake, p.done = make(chan struct{}, 1), make(chan struct{})
		go p.run()
	}
	return p
}

// queue begins an operation when those queued before are nearly done: side by side all would end late.
func (p *progress) queue(bytes int, post func() (*mpi.Request, error)) (*flight, error) {
	begin := time.Now()
	p.guard.Lock()
	defer p.guard.Unlock()
	one := &flight{post: post, bytes: bytes}
	p.queued = append(p.queued, one)
	p.step = append(p.step, one)
	err := p.beginQueued()
	p.waited += time.Since(begin)
	return one, err
}

// poll gives the library a chance, where the rank itself is to do that.
func (p *progress) poll() error {
	if p.kind != "test" {
		return nil
	}
	begin := time.Now()
	p.guard.Lock()
	defer p.guard.Unlock()
	err := p.look()
	p.waited += time.Since(begin)
	return err
}

// wait returns when it is over. What is queued goes on meanwhile: a peer may have to have it first.
func (p *progress) wait(one *flight) error {
	begin := time.Now()
	p.guard.Lock()
	defer p.guard.Unlock()
	defer func() { p.waited += time.Since(begin) }()
	for !one.over {
		if p.fault != nil {
			return p.fault
		}
		if one.request != nil && len(p.queued) == 0 && !p.sleeps {
			if err := one.request.Wait(); err != nil {
				return err
			}
			if err := p.finished(one); err != nil {
				return err
			}
			continue
		}
		if err := p.look(); err != nil {
			return err
		}
		if waited := time.Since(begin); !one.over && p.sleeps && waited > awake {
			doze(min(waited/10, longestSleep))
		}
	}
	return nil
}

// finishStep returns the seconds waited and those under way of a step whose operations are all over.
func (p *progress) finishStep() (waited, underWay float64) {
	p.guard.Lock()
	defer p.guard.Unlock()
	spans := make([][2]time.Time, 0, len(p.step))
	for _, one := range p.step {
		if !one.seen {
			underWay = math.NaN()
		}
		spans = append(spans, [2]time.Time{one.begin, one.end})
	}
	waited = p.waited.Seconds()
	p.waited, p.step = 0, p.step[:0]
	if !math.IsNaN(underWay) {
		underWay = union(spans)
	}
	return waited, underWay
}

// close ends the goroutine, if there is one.
func (p *progress) close() {
	if p.wake != nil {
		close(p.wake)
		<-p.done
		p.wake = nil
	}
}

func (p *progress) beginQueued() error {
	bytes := 0
	for _, one := range p.going {
		bytes += one.bytes
	}
	for len(p.queued) > 0 && (len(p.going) < 2 || bytes < windowBytes) {
		one := p.queued[0]
		p.queued = p.queued[1:]
		one.begin = time.Now()
		var err error
		if one.request, err = one.post(); err != nil {
			return err
		}
		p.going = append(p.going, one)
		bytes += one.bytes
		if p.wake != nil {
			select {
			case p.wake <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

func (p *progress) look() error {
	for _, one := range slices.Clone(p.going) {
		over, err := one.request.Test()
		if err != nil {
			return err
		}
		if over {
			if err := p.finished(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *progress) finished(one *flight) error {
	one.over, one.end, one.seen = true, time.Now(), p.kind != "none"
	p.going = slices.DeleteFunc(p.going, func(other *flight) bool { return other == one })
	return p.beginQueued()
}

func (p *progress) run() {
	defer close(p.done)
	for range p.wake {
		for busy := true; busy; time.Sleep(lookPeriod) {
			p.guard.Lock()
			if p.fault == nil {
				// `wait` returns it.
				p.fault = p.look()
			}
			busy = p.fault == nil && len(p.going) > 0
			p.guard.Unlock()
		}
	}
}

// doze leaves the core to others: the runtime's own sleeps end a millisecond late where nothing else runs.
func doze(span time.Duration) {
	left := syscall.NsecToTimespec(int64(span))
	// Woken by a signal, it has dozed enough.
	_ = syscall.Nanosleep(&left, nil)
}

// union returns the seconds covered by spans of begin and end.
func union(spans [][2]time.Time) float64 {
	slices.SortFunc(spans, func(a, b [2]time.Time) int { return a[0].Compare(b[0]) })
	var total time.Duration
	var last time.Time
	for _, span := range spans {
		begin, end := span[0], span[1]
		if begin.Before(last) {
			begin = last
		}
		if end.After(begin) {
			total += end.Sub(begin)
		}
		if end.After(last) {
			last = end
		}
	}
	return total.Seconds()
}
