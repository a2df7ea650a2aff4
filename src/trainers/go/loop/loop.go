// Package loop trains: what payloads/train.py is to a trainer in Python.
package loop

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/results"
	"transect-trainer-go/strategies"
	"transect-trainer-go/trainer"
	"transect-trainer-go/turns"
)

// Program is what computes: a trainer for each precision that it has, and what its record says of it.
type Program struct {
	Float32   func(*plan.Plan) (trainer.Trainer[float32], error)
	Float64   func(*plan.Plan) (trainer.Trainer[float64], error)
	Libraries func() map[string]string
	// Where it computes, "cpu" or "cuda"; "" is the CPU.
	Device string
}

// series are of each step and each epoch, by the contract's names.
type series struct {
	loss, step, compute, communication, underWay, input []float64
	scores, epochEnd, evaluation                        []float64
}

type rank[T trainer.Number] struct {
	plan     *plan.Plan
	program  Program
	place    strategies.Place
	strategy strategies.Strategy[T]
	trainer  trainer.Trainer[T]
	turns    *turns.Turns
	source   *source[T]
	test     *samples[T]
	answers  []int64
	rates    []float64
	series   series
	checked  [][]float64
	// Seconds of preparing batches, and of waiting for them.
	preparing, waited float64
}

// run does all of a rank's work; `number` is told as soon as it is known. The returned strategy has not been left.
func run[T trainer.Number](
	p *plan.Plan, program Program, make func(*plan.Plan) (trainer.Trainer[T], error), who *int,
	joined func(strategies.Aborter),
) (strategies.Strategy[T], error) {
	strategy, err := strategies.Of[T](p)
	if err != nil {
		return nil, err
	}
	r := &rank[T]{plan: p, program: program, strategy: strategy}
	if r.turns, err = turns.Join(); err != nil {
		return nil, err
	}
	if r.place, err = strategy.Join(); err != nil {
		return nil, err
	}
	*who = r.place.Rank
	if aborter, ok := any(strategy).(strategies.Aborter); ok {
		joined(aborter)
	}
	if r.place.Size != p.Cell.Ranks() {
		return nil, fault.New(fault.Crash, "started on %d ranks, the cell has %d", r.place.Size, p.Cell.Ranks())
	}
	if err := results.Place(p.Out, r.place.Rank); err != nil {
		return nil, err
	}
	if r.trainer, err = make(p); err != nil {
		return nil, err
	}
	touched := time.Now()
	if err := r.read(); err != nil {
		return nil, err
	}
	if err := strategy.Start(r.trainer); err != nil {
		return nil, err
	}
	ready := time.Since(touched).Seconds()
	startup := 0.0
	if text := os.Getenv("TRANSECT_STARTED_AT"); text != "" {
		began, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fault.Bad("TRANSECT_STARTED_AT is %q, expected seconds", text)
		}
		startup = float64(time.Now().UnixNano())/1e9 - began
	}
	rest, err := memory("VmRSS")
	if err != nil {
		return nil, err
	}
	fmt.Printf("rank %d of %d begins to train\n", r.place.Rank, r.place.Size)
	usage, err := r.train()
	if err != nil {
		return nil, err
	}
	return strategy, r.write(map[string]any{
		"startup_s": startup, "data_to_start_s": ready, "memory_at_rest_bytes": rest, "usage": usage,
	})
}

// read brings in the data that this rank trains on and, on rank 0, that it is tested on.
func (r *rank[T]) read() error {
	p := r.plan
	var err error
	if r.rates, err = p.Rates.Floats(); err != nil {
		return err
	}
	share, count := (r.place.Rank-p.Servers)/p.ModelParts, p.Replicas
	if sharer, ok := any(r.strategy).(strategies.Sharer); ok {
		share, count = sharer.Share()
	}
	if r.strategy.Trains() {
		if share < 0 || share >= count {
			return fault.New(fault.Crash, "rank %d has part %d of %d of a batch", r.place.Rank, share, count)
		}
		one := []int{share}
		parts := func(int) []int { return one }
		if len(p.Workers) > 0 {
			parts = func(step int) []int { return p.Parts(r.place.Rank, step) }
		}
		if r.source, err = newSource[T](p, parts, count); err != nil {
			return err
		}
	}
	if r.place.Rank != 0 || p.Cell.Input == "synthetic" {
		return nil
	}
	if p.Model.Score != "accuracy" {
		return fault.Bad("the score %q is not known, only accuracy", p.Model.Score)
	}
	if r.test, err = readSamples[T](p.Data.XTest, &p.Data); err != nil {
		return err
	}
	r.answers, err = p.Data.YTest.Integers()
	if err == nil && len(r.answers) != p.Data.XTest.Shape[0] {
		err = fault.Bad("%d test samples have %d labels", p.Data.XTest.Shape[0], len(r.answers))
	}
	return err
}

// train goes through all steps; it returns what they used.
func (r *rank[T]) train() (map[string]any, error) {
	p, s := r.plan, &r.series
	for _, one := range []*[]float64{&s.loss, &s.step, &s.compute, &s.communication, &s.underWay, &s.input} {
		*one = make([]float64, p.Steps)
	}
	var batches *ahead[T]
	if r.source != nil {
		batches = newAhead(r.source, p.Steps)
	}
	// What was built is what stays: nothing of it is garbage, and steps make none.
	runtime.GC()
	if err := r.strategy.Barrier(); err != nil {
		return nil, err
	}
	if r.turns.Taken() {
		if err := r.turns.Begin(); err != nil {
			return nil, err
		}
		if err := r.strategy.Barrier(); err != nil {
			return nil, err
		}
	}
	if p.CheckedSteps == 0 && r.place.Rank == 0 {
		// Without a reference nothing is compared, and the start is what there is after no step.
		r.checked = r.trainer.Weights()
	}
	begin, busy := time.Now(), processorTime()
	// What is no training: keeping weights, waiting for a turn, and testing the model.
	paused, waited := 0.0, 0.0
	for number := range p.Steps {
		t0 := time.Now()
		t1 := t0
		times, err := r.step(number, func() trainer.Batch[T] {
			begin := time.Now()
			batch := batches.next()
			t1 = t1.Add(time.Since(begin))
			return batch
		})
		if err != nil {
			return nil, err
		}
		t2 := time.Now()
		s.loss[number], s.compute[number] = times.Loss, times.Compute
		s.communication[number], s.underWay[number] = times.Communication, times.UnderWay
		s.input[number], s.step[number] = t1.Sub(t0).Seconds(), t2.Sub(t0).Seconds()
		if number+1 == p.CheckedSteps && r.place.Rank == 0 {
			r.checked = r.trainer.Weights()
			paused += time.Since(t2).Seconds()
		}
		if r.turns.Step() {
			seconds, err := r.wait()
			if err != nil {
				return nil, err
			}
			waited += seconds
		}
		if (number+1)%p.StepsPerEpoch != 0 {
			continue
		}
		tested := time.Now()
		if r.place.Rank == 0 {
			score, err := r.score()
			if err != nil {
				return nil, err
			}
			s.scores = append(s.scores, score)
		}
		s.evaluation = append(s.evaluation, time.Since(tested).Seconds())
		paused += s.evaluation[len(s.evaluation)-1]
		// Others wait here, not in the next step's communication.
		if err := r.endEpoch(); err != nil {
			return nil, err
		}
		s.epochEnd = append(s.epochEnd, time.Since(begin).Seconds()-paused-waited)
	}
	if finisher, ok := any(r.strategy).(strategies.Finisher[T]); ok {
		if err := finisher.Finish(r.trainer); err != nil {
			return nil, err
		}
	}
	if err := r.turns.End(); err != nil {
		return nil, err
	}
	wall, cpu := time.Since(begin).Seconds()-waited, processorTime()-busy
	if batches != nil {
		r.preparing = batches.Preparing
		for _, seconds := range s.input {
			r.waited += seconds
		}
	}
	return map[string]any{"wall_s": wall, "cpu_s": cpu, "cpu_utilisation": cpu / wall, "energy": []any{}}, nil
}

// step does one; `next` returns the batch of each of this rank's parts, one after another.
func (r *rank[T]) step(number int, next func() trainer.Batch[T]) (strategies.Times, error) {
	if len(r.plan.Workers) > 0 {
		dealer, ok := any(r.strategy).(strategies.Dealer[T])
		if !ok {
			return strategies.Times{}, fault.Bad("workers come and go, which %s does not know", r.plan.Cell.Strategy)
		}
		return dealer.Deal(r.trainer, number, r.plan.Parts(r.place.Rank, number), next, r.rates[number])
	}
	var batch trainer.Batch[T]
	if r.source != nil {
		batch = next()
	}
	return r.strategy.Step(r.trainer, batch, r.rates[number])
}

// wait lets others have their turn, and returns the seconds that it took. A peer may need this rank's help to receive the
// last messages, and none begins before the others.
func (r *rank[T]) wait() (float64, error) {
	begin := time.Now()
	for _, part := range []func() error{r.strategy.Barrier, r.turns.Wait, r.strategy.Barrier} {
		if err := part(); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds(), nil
}

func (r *rank[T]) endEpoch() error {
	if loose, ok := any(r.strategy).(strategies.Loose); ok {
		return loose.EndEpoch()
	}
	return r.strategy.Barrier()
}

func processorTime() float64 {
	usage := used()
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(time syscall.Timeval) float64 { return float64(time.Sec) + float64(time.Usec)/1e6 }

func used() syscall.Rusage {
	var usage syscall.Rusage
	// Its only errors are a wrong number and a wrong address.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage
}
