package loop

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"transect-trainer-go/plan"
	"transect-trainer-go/results"
	"transect-trainer-go/strategies"
	"transect-trainer-go/trainer"
)

// memory is what the kernel tells of the process by a name of /proc/self/status: VmRSS what is resident now, VmHWM
// the most since the program began; getrusage counts what the process had been before, too.
func memory(name string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), name+":")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); !found || err != nil {
		return 0, fmt.Errorf("/proc/self/status tells no %s: %w", name, err)
	}
	return kilobytes * 1024, nil
}

// write leaves all files of the rank; what was measured lies on disk before restarts may fail.
func (r *rank[T]) write(facts map[string]any) error {
	p, out, which := r.plan, r.plan.Out, r.place.Rank
	peak, err := memory("VmHWM")
	if err != nil {
		return err
	}
	groups := results.Groups{}
	if err := groups.Write(out, which, "series", r.named()); err != nil {
		return err
	}
	if which == 0 {
		if err := groups.Write(out, which, "weights", weights(p, r.trainer.Weights())); err != nil {
			return err
		}
		if err := groups.Write(out, which, "checked", weights(p, r.checked)); err != nil {
			return err
		}
	}
	if len(p.Restarts) > 0 {
		losses, err := r.restart()
		if err != nil {
			return err
		}
		if err := groups.Write(out, which, "restarts", losses); err != nil {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	libraries := map[string]string{"go": runtime.Version()}
	for _, more := range []map[string]string{r.program.Libraries(), r.strategy.Libraries()} {
		for name, version := range more {
			libraries[name] = version
		}
	}
	facts["rank"], facts["host"], facts["peak_memory_bytes"] = which, host, peak
	facts["libraries"], facts["arrays"] = libraries, groups
	if !r.strategy.Trains() {
		facts["tells_loss"] = false
	}
	details := map[string]any{}
	if told, ok := any(r.strategy).(strategies.Detailed); ok {
		details = told.Details()
	}
	if r.source != nil {
		// Batches are prepared beside the steps: what of it no step waited for was hidden.
		hidden := max(0, r.preparing-r.waited)
		details["input"] = map[string]any{"preparing_s": r.preparing, "waited_s": r.waited, "hidden_s": hidden}
	}
	facts["strategy"] = details
	return results.Facts(out, which, facts)
}

func (r *rank[T]) named() []results.Named {
	s := &r.series
	steps, epochs := []int{len(s.loss)}, []int{len(s.epochEnd)}
	all := []results.Named{
		{Name: "loss", Shape: steps, Values: s.loss}, {Name: "step", Shape: steps, Values: s.step},
		{Name: "compute", Shape: steps, Values: s.compute}, {Name: "communication", Shape: steps, Values: s.communication},
		{Name: "under_way", Shape: steps, Values: s.underWay}, {Name: "input", Shape: steps, Values: s.input},
		{Name: "epoch_end", Shape: epochs, Values: s.epochEnd}, {Name: "evaluation", Shape: epochs, Values: s.evaluation},
	}
	if r.place.Rank == 0 {
		all = append(all, results.Named{Name: "score_sum", Shape: []int{len(s.scores)}, Values: s.scores})
	}
	if sampler, ok := any(r.strategy).(strategies.Sampler); ok {
		for name, values := range sampler.Series() {
			all = append(all, results.Named{Name: name, Shape: []int{len(values)}, Values: values})
		}
	}
	return all
}

func weights(p *plan.Plan, values [][]float64) []results.Named {
	all := make([]results.Named, len(values))
	for i, array := range values {
		all[i] = results.Named{Name: p.Weights[i].Name, Shape: p.Weights[i].Shape, Values: array}
	}
	return all
}

// restart takes the plan's steps from states of the reference; it returns each one's losses by its first step.
func (r *rank[T]) restart() ([]results.Named, error) {
	var all []results.Named
	for _, one := range r.plan.Restarts {
		state, err := r.state(one)
		if err != nil {
			return nil, err
		}
		if err := r.trainer.Resume(state); err != nil {
			return nil, err
		}
		losses := make([]float64, one.Steps)
		for i := range losses {
			step, at := one.First+i, 0
			times, err := r.step(step, func() trainer.Batch[T] {
				at++
				return r.source.one(step, r.source.parts(step)[at-1])
			})
			if err != nil {
				return nil, err
			}
			losses[i] = times.Loss
		}
		all = append(all, results.Named{Name: strconv.Itoa(one.First), Shape: []int{one.Steps}, Values: losses})
	}
	return all, nil
}

// state reads one of the plan's states.
func (r *rank[T]) state(one plan.Restarted) (trainer.State, error) {
	p := r.plan
	state := trainer.State{Updates: one.First}
	if one.First < 0 || one.Steps < 1 || one.First+one.Steps > p.Steps {
		return state, fmt.Errorf("restart at step %d: %d steps of %d", one.First, one.Steps, p.Steps)
	}
	for i := range p.Weights {
		array := &p.Weights[i].Array
		if one.Weights != nil {
			var there bool
			if array, there = one.Weights[p.Weights[i].Name]; !there {
				return state, fmt.Errorf("restart at step %d: it has no %s", one.First, p.Weights[i].Name)
			}
		}
		values, err := array.Floats()
		if err != nil {
			return state, err
		}
		state.Weights = append(state.Weights, values)
	}
	for _, given := range one.States {
		var arrays [][]float64
		for i := range p.Weights {
			if !p.Weights[i].Trained {
				continue
			}
			// What is all zero is not stored.
			values := make([]float64, p.Weights[i].Count())
			if array, there := given[p.Weights[i].Name]; there {
				var err error
				if values, err = array.Floats(); err != nil {
					return state, err
				}
			}
			arrays = append(arrays, values)
		}
		state.States = append(state.States, arrays)
	}
	return state, nil
}
