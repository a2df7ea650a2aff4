package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"

	ort "github.com/yalue/onnxruntime_go"
)

// The step's own graph stands before that of the micro-batches.
const (
	stepGraph = iota
	accumulateGraph
)

// training is what goes on with a portable training step, read and found to fit together.
type training struct {
	args     *arguments
	manifest *manifest
	schedule []values
	order    *order
	rows     []*tensor
	state    *savedState
	// What came of the steps: of each metric, the loss first, a value for each step.
	metrics     [][]float64
	parts       [parts][]int64
	checkpoints []fields
}

// Parts of a step, in nanoseconds over its micro-batches.
const (
	gatherPart = iota
	bindPart
	runPart
	readPart
	parts
)

var partNames = [parts]string{"gather_ns", "bind_ns", "run_ns", "read_ns"}

// runTrain trains until the last step; it fills the record, also when it diverged.
func runTrain(args *arguments, opts *options, record fields) error {
	job, err := readTraining(args)
	if err != nil {
		return err
	}
	if err := loadRuntime(args.library); err != nil {
		return err
	}
	size := args.batch
	if job.state.step == args.until {
		// Where no step is left there is nothing that a batch was held to.
		size = 0
	}
	rows, err := newBatch(job.rows, size)
	if err != nil {
		return err
	}
	trainer, err := newTrainer(args, opts, job.manifest, job.state, rows)
	if err != nil {
		return err
	}
	err = withoutCollector(func() error {
		defer func() { record["peak_memory_bytes"] = peakMemory() }()
		return job.steps(trainer)
	})
	record["session_ns"], record["runtime_version"] = trainer.sessionNs, ort.GetVersion()
	record["run_includes"] = []string{}
	if args.provider == "cuda" {
		// The binding has no values on a device: what a run gives is copied to the host in it.
		record["run_includes"] = []string{"read"}
	}
	maps.Copy(record, job.told())
	return err
}

// readTraining reads all that there is to read before a session is made.
func readTraining(args *arguments) (*training, error) {
	job := &training{args: args}
	var err error
	if job.manifest, err = readManifest(args.step); err != nil {
		return nil, err
	}
	if _, err = job.manifest.graphs(args.accumulate); err != nil {
		return nil, err
	}
	if job.schedule, err = readSchedule(args.schedule, job.manifest.Hyper, args.until); err != nil {
		return nil, err
	}
	if job.order, err = readOrder(args); err != nil {
		return nil, err
	}
	var rows int64
	if job.rows, rows, err = readRows(args.inputs, job.manifest, args.batch); err != nil {
		return nil, err
	}
	if err = job.order.check(rows); err != nil {
		return nil, err
	}
	begin := job.manifest.StateFile
	if args.state != "" {
		begin = args.state
	}
	if isThere(args.checkpoint) {
		begin = args.checkpoint
	}
	if job.state, err = readState(begin, job.manifest); err != nil {
		return nil, err
	}
	if job.state.step > args.until {
		return nil, bad("%s: has done %d steps, --until %d is less", begin, job.state.step, args.until)
	}
	job.metrics = make([][]float64, len(job.manifest.Metrics))
	return job, nil
}

const whyNotFinite = "the rate is too high, or the target has a class that the model does not"

// steps does the steps that are left, and keeps the state.
func (j *training) steps(on *trainer) error {
	keeps := newCheckpoint(j.args.checkpoint, j.manifest)
	keeps.removeLeft()
	until, every := j.args.until, j.args.every
	for step := j.state.step; step < until; step++ {
		means, took, err := j.step(on, step)
		if err != nil {
			return err
		}
		if math.IsNaN(means[0]) || math.IsInf(means[0], 0) {
			return diverged(step, fmt.Sprintf("the loss is %v: %s", means[0], whyNotFinite))
		}
		for i, mean := range means {
			j.metrics[i] = append(j.metrics[i], mean)
		}
		for i, part := range took {
			j.parts[i] = append(j.parts[i], part)
		}
		if done := step + 1; every > 0 && done%every == 0 && done < until {
			if err := j.keep(on, keeps, done); err != nil {
				return err
			}
		}
	}
	return j.keep(on, keeps, until)
}

// step does one; it returns the means of the metrics over its micro-batches.
func (j *training) step(on *trainer, step int) ([]float64, [parts]int64, error) {
	var took [parts]int64
	means := make([]float64, len(j.metrics))
	batches := j.args.accumulate
	for micro := range batches {
		which := accumulateGraph
		if micro == batches-1 {
			which = stepGraph
		}
		t0 := now()
		on.batch.gather(j.order.of(step*batches + micro))
		t1 := now()
		if err := on.setHyper(j.schedule, step); err != nil {
			return nil, took, err
		}
		if err := on.bind(which); err != nil {
			return nil, took, err
		}
		t2 := now()
		if err := on.run(which); err != nil {
			return nil, took, err
		}
		t3 := now()
		for i := range means {
			means[i] += on.metric(i)
		}
		t4 := now()
		took[gatherPart] += t1 - t0
		took[bindPart] += t2 - t1
		took[runPart] += t3 - t2
		took[readPart] += t4 - t3
	}
	for i := range means {
		means[i] /= float64(batches)
	}
	return means, took, nil
}

// keep writes the state after so many steps.
func (j *training) keep(on *trainer, keeps *checkpoint, done int) error {
	begin := now()
	state, ok := on.snapshot()
	if !ok {
		// The last step is not one of those that went well.
		for i, series := range j.metrics {
			j.metrics[i] = series[:max(0, len(series)-1)]
		}
		for i, series := range j.parts {
			j.parts[i] = series[:max(0, len(series)-1)]
		}
		return diverged(max(0, done-1), "the state has numbers that are not finite")
	}
	if err := keeps.write(state); err != nil {
		return err
	}
	j.checkpoints = append(j.checkpoints, fields{"step": done, "ns": now() - begin})
	return nil
}

func diverged(step int, why string) error {
	return &failure{code: failed, cause: "diverged", message: fmt.Sprintf("step %d: %s", step, why)}
}

// told returns the fields of the record.
func (j *training) told() fields {
	metrics := fields{}
	for i, metric := range j.manifest.Metrics {
		metrics[metric.Name] = tellable(j.metrics[i])
	}
	loss := j.manifest.Metrics[0].Name
	record := fields{
		"first_step": j.state.step, "losses": metrics[loss], "metrics": metrics,
		"checkpoints": append([]fields{}, j.checkpoints...), "state": j.args.checkpoint,
		"step_graph": j.manifest.StepGraph,
	}
	delete(metrics, loss)
	for i, name := range partNames {
		record[name] = append([]int64{}, j.parts[i]...)
	}
	return record
}

// isThere tells whether there is something of this name, also when it cannot be looked at.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
