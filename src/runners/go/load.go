package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// A sleep may end late by this much; the rest of the time is waited through.
const sleepMarginNs = 200_000

// served is a request that was; span: start and end, in nanoseconds from the start of all.
type served struct {
	request int
	span    [2]int64
}

// queue hands out requests in the order of their arrival.
type queue struct {
	// Nanoseconds from the start.
	arrivals []int64
	next     atomic.Int64
	// What is not taken then stays unserved.
	limit int64
	zero  int64
}

// load serves the arrivals with some sessions at once.
func load(p *plan, out *result) fields {
	arrivals := view[int64](p.of(roleArrivals)[0].data())
	requests := &queue{arrivals: arrivals, limit: int64(p.LastBeginNs)}
	all, full := p.batches(0)
	engines := make([]*engine, p.Sessions)
	for i := range engines {
		engines[i] = newEngine(p, 0, "")
	}
	facts, alike := engines[0].allRows(p, 0, all)
	for _, engine := range engines {
		engine.warmUp(full, p.Warmup, alike)
	}
	var parts [][]served
	withoutCollector(func() {
		parts = requests.serveAll(engines, full)
		out.copyProcess()
	})
	spans := inOrder(parts)
	facts["stop_reason"] = "all-served"
	if len(spans) < len(arrivals) {
		facts["stop_reason"] = "time-limit"
	}
	write(out, "times.bin", spans)
	return facts
}

// serveAll returns the served requests of each worker.
func (q *queue) serveAll(engines []*engine, batches [][]tensor) [][]served {
	parts, faults := make([][]served, len(engines)), make([]*failure, len(engines))
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := range engines {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			// A thread of its own, as the other languages' workers have.
			runtime.LockOSThread()
			ready.Done()
			<-begin
			faults[i] = caught(func() { parts[i] = q.serve(engines[i], batches) })
			if faults[i] != nil {
				q.next.Store(int64(len(q.arrivals)))
			}
		}()
	}
	ready.Wait()
	q.zero = now()
	close(begin)
	done.Wait()
	for _, fault := range faults {
		if fault != nil {
			panic(fault)
		}
	}
	return parts
}

// inOrder returns the served requests in the order of their arrival, the first ones of all.
func inOrder(parts [][]served) [][2]int64 {
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b served) int { return a.request - b.request })
	spans := make([][2]int64, len(all))
	for i, one := range all {
		spans[i] = one.span
	}
	return spans
}

// serve takes requests until there is none, or the time is up.
func (q *queue) serve(engine *engine, batches [][]tensor) []served {
	found := make([]served, 0, len(q.arrivals))
	// What is taken is served, so that those served are the first ones, without a gap.
	for now()-q.zero <= q.limit {
		request := int(q.next.Add(1)) - 1
		if request >= len(q.arrivals) {
			break
		}
		begin := waitUntil(q.zero + q.arrivals[request])
		engine.step(batches[request%len(batches)])
		found = append(found, served{request, [2]int64{begin - q.zero, now() - q.zero}})
	}
	return found
}

// waitUntil sleeps, and yields for the last part; it returns the time of its end. The thread
// itself does: Go's own sleep hands a locked one over to another and back.
func waitUntil(due int64) int64 {
	for {
		at := now()
		if at >= due {
			return at
		}
		if left := due - at - sleepMarginNs; left > 0 {
			sleep := syscall.NsecToTimespec(left)
			syscall.Nanosleep(&sleep, nil)
		} else {
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}
