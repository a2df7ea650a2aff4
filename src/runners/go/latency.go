package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
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

// fields of the record.
type fields map[string]any

// runLatency runs all rows, writes the outputs, then measures; returns the record's fields.
func runLatency(args *arguments, opts *options) (fields, error) {
	in, err := readInputs(args.inputs)
	if err != nil {
		return nil, err
	}
	if err := loadRuntime(args.library); err != nil {
		return nil, err
	}
	batches, full := in.batches()
	engine, err := open(args.model, batches[0], opts, args.provider, "")
	if err != nil {
		return nil, err
	}
	record, alike, err := engine.allRows(in, args.outputs)
	if err != nil {
		return nil, err
	}
	if err := engine.warmUp(batches[:full], alike, args.warmup); err != nil {
		return nil, err
	}
	if err := engine.measure(batches[:full], args, record); err != nil {
		return nil, err
	}
	record["session_ns"] = engine.sessionNs
	record["run_includes"] = runIncludes(args.provider, engine.copies())
	if args.profile == "" {
		return record, nil
	}
	return record, profile(args, opts, batches[0], alike, record)
}

// profile runs the first batch under ONNX Runtime's own profiler, in a session of its own.
func profile(args *arguments, opts *options, feed []tensor, alike []likeness, record fields) error {
	before := profiles(args.profile)
	engine, err := open(args.model, feed, opts, args.provider, args.profile)
	if err != nil {
		return err
	}
	if err := engine.keep(alike); err != nil {
		return err
	}
	runs := make([]int64, profiledRuns)
	for i := range runs {
		took, err := engine.step(feed)
		if err != nil {
			return err
		}
		runs[i] = took.run
	}
	record["profile_run_ns"] = runs
	record["profile_file"], err = engine.endProfile(args.profile, before)
	return err
}

// allRows runs the first batch, notes when, then every row, and writes the outputs. It returns
// what the outputs of a full batch are like: of all the same, or they could not be joined.
func (e *engine) allRows(in *inputs, folder string) (fields, []likeness, error) {
	batches, _ := in.batches()
	// The last one may be partial, which a model of a fixed batch does not take.
	if err := e.model.check(batches[len(batches)-1]); err != nil {
		return nil, nil, err
	}
	if err := e.first(batches[0]); err != nil {
		return nil, nil, err
	}
	firstResult := monotonicNs()
	out, err := newWriter(folder, e.model.outputs)
	if err != nil {
		return nil, nil, err
	}
	alike := make([]likeness, len(e.outputs))
	for i, value := range e.outputs {
		alike[i] = likenessOf(value)
	}
	for _, feed := range batches {
		if err := e.first(feed); err != nil {
			return nil, nil, err
		}
		rows := -1
		if in.batch > 0 {
			rows = int(feed[0].shape[0])
		}
		if err := out.add(e.outputs, rows); err != nil {
			return nil, nil, err
		}
	}
	var all any
	if rows, cut := in.rows(); cut {
		all = rows
	}
	record := fields{
		"first_result_ns": firstResult,
		"outputs":         map[string]any{"header": out.header(), "rows": all},
	}
	return record, alike, out.finish()
}

// first runs a feed whose outputs may be of any shape.
func (e *engine) first(feed []tensor) error {
	if err := e.prepare(feed); err != nil {
		return err
	}
	_, err := e.step(feed)
	return err
}

func (e *engine) warmUp(batches [][]tensor, alike []likeness, iterations int) error {
	if err := e.keep(alike); err != nil {
		return err
	}
	for i := range iterations {
		if _, err := e.step(batches[i%len(batches)]); err != nil {
			return err
		}
	}
	return nil
}

// copies tells whether outputs come into Go's memory inside of Run.
func (e *engine) copies() bool {
	return slices.ContainsFunc(e.model.outputs, func(o end) bool { return o.element != onnxString })
}

// withoutCollector calls work while Go's garbage collector is off, unless memory runs out.
func withoutCollector(work func() error) error {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	before := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(int64(now.Sys) + memoryLimit)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(limit)
	return work()
}

// measure times iterations until the interval is narrow or the time is up.
//
// The interval is looked at after the least number of runs and then each time their number has
// grown by a quarter, so that sorting costs little.
func (e *engine) measure(batches [][]tensor, args *arguments, record fields) error {
	var bind, run, copied []int64
	stop := ""
	err := withoutCollector(func() error {
		nextCheck, begin, garbage := args.minRuns, now(), allocated()
		for stop == "" {
			took, err := e.step(batches[len(run)%len(batches)])
			if err != nil {
				return err
			}
			bind, run, copied = append(bind, took.bind), append(run, took.run), append(copied, took.copy)
			if len(run)%1024 == 0 && allocated()-garbage > garbageLimit {
				runtime.GC()
				garbage = allocated()
			}
			if len(run) < args.minRuns {
				continue
			}
			if len(run) >= nextCheck {
				nextCheck = int(math.Ceil(float64(len(run)) * growth))
				if intervalIsNarrow(run) {
					stop = "interval-reached"
				}
			}
			if stop == "" && float64(now()-begin) >= args.maxSeconds*1e9 {
				stop = "time-limit"
			}
		}
		record["peak_memory_bytes"] = peakMemory()
		return nil
	})
	record["bind_ns"], record["run_ns"], record["copy_ns"] = bind, run, copied
	record["stop_reason"] = stop
	return err
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
