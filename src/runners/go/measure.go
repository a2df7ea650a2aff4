package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

const (
	intervalWidth = 0.02
	// Half of the 97.5 % quantile of the normal distribution.
	halfZ95      = 0.98
	growth       = 1.25
	profiledRuns = 10
	// Of garbage that the timed calls leave; it is collected between two of them.
	garbageLimit = 64 << 20
	// What may be allocated at all while the collector is off, above what is there.
	memoryLimit = 1 << 30
)

// latency runs all rows, writes the outputs, then measures.
func latency(p *plan, out *result) fields {
	turns := joinTurns()
	all, full := p.batches(0)
	engine := newEngine(p, 0, "")
	facts, alike := engine.allRows(p, 0, all)
	engine.warmUp(full, p.Warmup, alike)
	var taken []times
	withoutCollector(func() {
		taken, facts["stop_reason"] = engine.measure(p, full, turns)
		out.copyProcess()
	})
	write(out, "times.bin", taken)
	if prefix := p.text(roleProfile); prefix != "" {
		facts["profile_file"] = profile(p, out, prefix, all[0], alike)
	}
	return facts
}

// cases runs each model once in a session of its own, and says what came of it.
func cases(p *plan, out *result) fields {
	for _, one := range p.of(roleModel) {
		line := fields{"case": one.Group, "status": "started"}
		out.say(line)
		fault := caught(func() {
			engine := newEngine(p, one.Group, "")
			defer engine.close()
			all, _ := p.batches(one.Group)
			facts, _ := engine.allRows(p, one.Group, all)
			line["status"], line["outputs"] = "ok", facts["outputs"]
		})
		if fault != nil {
			line["status"], line["message"] = "failed", fault.message
			if fault.unsupported {
				line["status"] = "unsupported"
			}
		}
		out.say(line)
	}
	return fields{}
}

// allRows runs the first batch, notes when, then every row, and writes the outputs. It returns
// what the outputs of a full batch are like: of all the same, or they could not be joined.
func (e *engine) allRows(p *plan, group int32, batches [][]tensor) (fields, []tensor) {
	e.prepare(p.rowsOf(batches[0]))
	e.step(batches[0])
	firstResult, alike := monotonicNs(), e.alike()
	folder := p.text(roleOutputs, group)
	outputs, described := make([]joined, len(e.ends)), make([]any, len(e.ends))
	for _, feed := range batches {
		rows := p.rowsOf(feed)
		e.prepare(rows)
		e.step(feed)
		for i, value := range e.outputs {
			path := filepath.Join(folder, fmt.Sprintf("output-%d.bin", i))
			outputs[i].add(value, rows, e.ends[i].name, path)
		}
	}
	for i := range outputs {
		described[i] = outputs[i].close()
	}
	return fields{
		"session_ns": e.sessionNs, "first_result_ns": firstResult,
		"outputs": described, "run_includes": e.runIncludes(),
	}, alike
}

func (e *engine) warmUp(batches [][]tensor, iterations int, alike []tensor) {
	e.keep(alike)
	for i := range iterations {
		e.step(batches[i%len(batches)])
	}
}

// runIncludes names the parts of an iteration that happen inside of Run: outputs come into Go's
// memory there, but those of strings.
func (e *engine) runIncludes() []string {
	includes := []string{}
	if e.onCUDA {
		includes = append(includes, "bind")
	}
	if slices.ContainsFunc(e.ends, func(o *entry) bool { return o.Dtype != stringNumber }) {
		includes = append(includes, "copy")
	}
	return includes
}

// withoutCollector calls work while Go's garbage collector is off, unless memory runs out.
func withoutCollector(work func()) {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	before := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(int64(now.Sys) + memoryLimit)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(limit)
	work()
}

// measure times iterations: as many as its turns have, or until the interval is narrow or the time
// is up. It returns why it stopped, too.
//
// The interval is looked at after the least number of runs and then each time their number has
// grown by a quarter, so that sorting costs little.
func (e *engine) measure(p *plan, batches [][]tensor, turns *turns) (taken []times, stop string) {
	garbage := allocated()
	step := func() {
		taken = append(taken, e.step(batches[len(taken)%len(batches)]))
		if len(taken)%1024 == 0 && allocated()-garbage > garbageLimit {
			runtime.GC()
			garbage = allocated()
		}
	}
	if turns != nil {
		// Nothing is timed while it waits.
		for left := turns.next('r'); left > 0; left = turns.next('d') {
			for range left {
				step()
			}
		}
		return taken, "turns"
	}
	nextCheck, begin := p.MinRuns, now()
	for {
		step()
		if len(taken) < p.MinRuns {
			continue
		}
		if len(taken) >= nextCheck {
			nextCheck = int(math.Ceil(float64(len(taken)) * growth))
			if intervalIsNarrow(runsOf(taken)) {
				return taken, "interval-reached"
			}
		}
		if now()-begin >= int64(p.MaxNs) {
			return taken, "time-limit"
		}
	}
}

// allocated returns how many bytes Go has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// intervalIsNarrow tells whether the 95 % interval of the median is at most 2 % of it wide.
//
// Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
// Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
func intervalIsNarrow(values []int64) bool {
	n := float64(len(values))
	low := math.Floor(0.5*n - halfZ95*math.Sqrt(n))
	high := math.Ceil(0.5*n + 1 + halfZ95*math.Sqrt(n))
	if low < 1 || high > n {
		return false
	}
	ordered := slices.Sorted(slices.Values(values))
	median := float64(ordered[(len(ordered)-1)/2]+ordered[len(ordered)/2]) / 2
	width := ordered[int(high)-1] - ordered[int(low)-1]
	return float64(width) <= intervalWidth*median
}

func runsOf(taken []times) []int64 {
	runs := make([]int64, len(taken))
	for i, one := range taken {
		runs[i] = one.run
	}
	return runs
}

// profile runs the first batch under ONNX Runtime's own profiler, in a session of its own; it
// returns the profile's file.
func profile(p *plan, out *result, prefix string, feed, alike []tensor) (file string) {
	engine := newEngine(p, 0, prefix)
	engine.keep(alike)
	taken := make([]times, profiledRuns)
	for i := range taken {
		taken[i] = engine.step(feed)
	}
	// The binding ends a profile when it closes the session, and does not say where it is: of those
	// with the prefix it is the last one, for behind that stands the time.
	engine.close()
	write(out, "profile_times.bin", runsOf(taken))
	folder, begin := filepath.Split(prefix)
	for _, one := range must(os.ReadDir(folder)) {
		if strings.HasPrefix(one.Name(), begin+"_") && strings.HasSuffix(one.Name(), ".json") {
			file = folder + one.Name()
		}
	}
	if file == "" {
		check(fmt.Errorf("%s: ONNX Runtime wrote no profile", prefix))
	}
	return file
}

// monotonicNs reads CLOCK_MONOTONIC, whose absolute value the package time does not show.
func monotonicNs() int64 {
	const clockMonotonic = 1
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}
