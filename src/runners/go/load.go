package main

import (
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// A sleep may end late by this much; the rest of the time is waited through.
const sleepMarginNs = 200_000

// In nanoseconds, 36 years: sums of times stay within 64 bits.
const lastArrival = 1 << 60

// served is a request that was, in nanoseconds from the start.
type served struct {
	request    int
	start, end int64
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

// runLoad serves the arrivals with some sessions at once; returns the record's fields.
func runLoad(args *arguments, opts *options) (fields, error) {
	arrivals, err := readArrivals(args.arrivals)
	if err != nil {
		return nil, err
	}
	in, err := readInputs(args.inputs)
	if err != nil {
		return nil, err
	}
	if err := loadRuntime(args.library); err != nil {
		return nil, err
	}
	batches, full := in.batches()
	engines := make([]*engine, args.sessions)
	for i := range engines {
		if engines[i], err = open(args.model, batches[0], opts, args.provider, ""); err != nil {
			return nil, err
		}
	}
	record, alike, err := engines[0].allRows(in, args.outputs)
	if err != nil {
		return nil, err
	}
	for _, engine := range engines {
		if err := engine.warmUp(batches[:full], alike, args.warmup); err != nil {
			return nil, err
		}
	}
	requests := newQueue(arrivals, args.maxSeconds)
	var parts [][]served
	err = withoutCollector(func() error {
		parts, err = requests.serveAll(engines, batches[:full])
		record["peak_memory_bytes"] = peakMemory()
		return err
	})
	if err != nil {
		return nil, err
	}
	found := inOrder(parts)
	begins, ends := make([]int64, len(found)), make([]int64, len(found))
	for i, one := range found {
		begins[i], ends[i] = one.start, one.end
	}
	record["stop_reason"] = "all-served"
	if len(found) < len(arrivals) {
		record["stop_reason"] = "time-limit"
	}
	record["session_ns"] = engines[0].sessionNs
	record["run_includes"] = runIncludes(args.provider, engines[0].copies())
	record["sessions"], record["arrivals"] = args.sessions, len(arrivals)
	record["start_ns"], record["end_ns"] = begins, ends
	return record, nil
}

func readArrivals(path string) ([]int64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	if len(raw) == 0 || len(raw)%8 != 0 {
		return nil, bad("%s: expected int64 arrival times, got %d bytes", path, len(raw))
	}
	arrivals := make([]int64, len(raw)/8)
	for i := range arrivals {
		arrivals[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	if arrivals[0] < 0 || arrivals[len(arrivals)-1] > lastArrival || !slices.IsSorted(arrivals) {
		return nil, bad("%s: expected arrival times from 0 to 2^60 ns that do not fall", path)
	}
	return arrivals, nil
}

func newQueue(arrivals []int64, maxSeconds float64) *queue {
	limit := 2*float64(arrivals[len(arrivals)-1]) + maxSeconds*1e9
	return &queue{arrivals: arrivals, limit: int64(math.Min(limit, math.MaxInt64/2))}
}

// serveAll returns the served requests of each worker.
func (q *queue) serveAll(engines []*engine, batches [][]tensor) ([][]served, error) {
	parts, errs := make([][]served, len(engines)), make([]error, len(engines))
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
			parts[i], errs[i] = q.serve(engines[i], batches)
		}()
	}
	ready.Wait()
	q.zero = now()
	close(begin)
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// inOrder returns the served requests in the order of their arrival, the first ones of all.
func inOrder(parts [][]served) []served {
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b served) int { return a.request - b.request })
	return all
}

// serve takes requests until there is none, or the time is up.
func (q *queue) serve(engine *engine, batches [][]tensor) ([]served, error) {
	found := make([]served, 0, len(q.arrivals))
	// What is taken is served, so that those served are the first ones, without a gap.
	for now()-q.zero <= q.limit {
		request := int(q.next.Add(1)) - 1
		if request >= len(q.arrivals) {
			break
		}
		begin := waitUntil(q.zero + q.arrivals[request])
		if _, err := engine.step(batches[request%len(batches)]); err != nil {
			q.next.Store(int64(len(q.arrivals)))
			return nil, err
		}
		found = append(found, served{request, begin - q.zero, now() - q.zero})
	}
	return found, nil
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
