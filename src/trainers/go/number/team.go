package number

import "sync"

// Team is a number of goroutines that work on parts of one job. What a part is does not depend on how
// many there are, so that results are the same with any number of threads.
type Team struct {
	threads int
	jobs    chan job
	done    sync.WaitGroup
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
					one.work(one.part)
					team.done.Done()
				}
			}()
		}
	}
	return team
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
			work(part)
			t.done.Done()
		}
	}
	// What is not begun yet the caller does itself.
	for {
		select {
		case one := <-t.jobs:
			one.work(one.part)
			t.done.Done()
		default:
			t.done.Wait()
			return
		}
	}
}
