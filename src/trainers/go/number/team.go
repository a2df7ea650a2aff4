package number

import (
	"sync"
	"sync/atomic"
)

// Team is a number of goroutines that work on parts of one job. What a part is does not depend on how
// many there are, so that results are the same with any number of threads.
type Team struct {
	threads int
	jobs    chan job
	done    sync.WaitGroup
	// What a part panicked with: nobody else could recover from it there.
	failed atomic.Pointer[any]
}

type job struct {
	part int
	work func(part int)
}

// NewTeam starts threads-1 goroutines; the caller of Run is the other one. They wait until the process ends.
func NewTeam(threads int) *Team {
	team := &Team{threads: max(1, threads)}
	if team.threads > 1 {
		team.jobs = make(chan job, 4*team.threads)
		for range team.threads - 1 {
			go func() {
				for one := range team.jobs {
					team.do(one)
				}
			}()
		}
	}
	return team
}

func (t *Team) do(one job) {
	defer t.done.Done()
	defer func() {
		if value := recover(); value != nil {
			t.failed.Store(&value)
		}
	}()
	one.work(one.part)
}

// Threads returns how many work.
func (t *Team) Threads() int { return t.threads }

// Least numbers that are worth a goroutine.
const worth = 1 << 14

// Run does work(part) for all parts, on several goroutines where the job has enough numbers.
func (t *Team) Run(parts, numbers int, work func(part int)) {
	if t.threads == 1 || parts == 1 || numbers < worth {
		for part := range parts {
			work(part)
		}
		return
	}
	t.done.Add(parts)
	for part := range parts {
		select {
		case t.jobs <- job{part, work}:
		default:
			t.do(job{part, work})
		}
	}
	// What is not begun yet the caller does itself.
	for {
		select {
		case one := <-t.jobs:
			t.do(one)
		default:
			t.done.Wait()
			if failed := t.failed.Load(); failed != nil {
				panic(*failed)
			}
			return
		}
	}
}
