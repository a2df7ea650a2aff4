package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	ort "github.com/yalue/onnxruntime_go"
)

// trainer is the graphs of a step, and all that they read and write.
type trainer struct {
	plan      *plan
	out       *result
	onCUDA    bool
	graphs    []*graph
	sessionNs int64
	// By the number of the entry, and those of a role.
	slots                       []*slot
	state, data, hyper, metrics []*slot
	order                       []int64
	// A bit for each graph: whether it ran an odd number of times. Where each tensor of the state
	// lies follows from it.
	turns uint
	// The file of the next checkpoint.
	next int
}

// slot is what a graph takes or gives: one value, or a tensor of the state in two places, of which
// a run reads the one and writes the other.
type slot struct {
	*entry
	places []ort.Value
	// A bit for each graph that changes it.
	changed uint
	// Of data: all rows, those of the batch, which stay where they are, and the bytes of one.
	all, batch []byte
	width      int
	// Of a hyper-parameter: a value for each step, and the one that it has.
	each []float64
	last float64
}

// graph is one of the step's, with what its inputs and outputs are bound to.
type graph struct {
	session      *ort.DynamicAdvancedSession
	takes, gives []*entry
	// By the trainer's turns, made when first needed.
	bindings [4]*binding
}

// binding is ONNX Runtime's, and what is bound to each input.
type binding struct {
	*ort.IoBinding
	inputs []ort.Value
}

// parts of a step, in nanoseconds over its micro-batches.
type parts struct{ gather, bind, run, read int64 }

// train does the steps, and keeps the state.
func train(p *plan, out *result) fields {
	trainer := newTrainer(p, out)
	withoutCollector(func() {
		taken, metrics := trainer.steps()
		out.copyProcess()
		write(out, "times.bin", taken)
		write(out, "metrics.bin", metrics)
	})
	includes := []string{}
	if trainer.onCUDA {
		// The binding has no values on a device: what a run gives is copied to the host in it.
		includes = append(includes, "read")
	}
	return fields{"session_ns": trainer.sessionNs, "run_includes": includes}
}

// newTrainer lays out all that the graphs read and write, and makes their sessions.
func newTrainer(p *plan, out *result) *trainer {
	made := &trainer{plan: p, out: out, onCUDA: p.onCUDA()}
	made.order = view[int64](p.of(roleOrder)[0].data())
	for i := range p.entries {
		made.slots = append(made.slots, &slot{entry: &p.entries[i], places: make([]ort.Value, 1)})
	}
	for _, given := range p.of(roleGives) {
		made.slots[given.Link].changed |= 1 << given.Group
	}
	for _, one := range made.slots {
		made.fill(one)
	}
	for _, one := range p.of(roleGraph) {
		takes, gives := p.of(roleTakes, one.Group), p.of(roleGives, one.Group)
		session, took := p.open(one.text, takes, gives, "")
		made.graphs = append(made.graphs, &graph{session: session, takes: takes, gives: gives})
		made.sessionNs += took
	}
	return made
}

// fill makes the values of a slot. The state is where the first run reads it.
func (t *trainer) fill(one *slot) {
	of := dtypes[one.Dtype]
	switch one.Role {
	case roleState:
		t.state = append(t.state, one)
		one.places[0] = must(of.over(one.shape, one.data()))
		if one.changed != 0 {
			one.places = append(one.places, of.room(one.shape))
		}
	case roleData:
		t.data = append(t.data, one)
		shape := one.shape.Clone()
		shape[0] = int64(t.plan.Batch)
		one.all, one.width = one.data(), of.size*elements(shape[1:])
		one.batch = room(one.width * t.plan.Batch)
		one.places[0] = must(of.over(shape, one.batch))
	case roleHyper:
		t.hyper = append(t.hyper, one)
		one.each = view[float64](one.data())
	case roleSeed:
		one.places[0] = must(ort.NewScalar(t.plan.Seed))
	case roleMetric:
		t.metrics = append(t.metrics, one)
		one.places[0] = of.room(nil)
	}
}

// at returns what the next run reads, or for ahead 1 what it writes. It reads the first place when
// the graphs that change it ran an even number of times in all, of two at most.
func (s *slot) at(turns uint, ahead int) ort.Value {
	ran := turns & s.changed
	return s.places[(int(ran^ran>>1)+ahead)&(len(s.places)-1)]
}

// steps does all of them, and returns what they took and the metrics of each. A loss that is not
// finite ends them, and no checkpoint has that.
func (t *trainer) steps() (taken []parts, metrics []float64) {
	p := t.plan
	for step := range p.Steps {
		means, took := t.step(step)
		taken, metrics = append(taken, took), append(metrics, means...)
		if math.IsNaN(means[0]) || math.IsInf(means[0], 0) {
			return taken, metrics
		}
		done, every := p.FirstStep+step+1, p.CheckpointEvery
		// The next one would take the place of the last good one.
		if every > 0 && done%every == 0 && step+1 < p.Steps && !t.checkpoint(done) {
			return taken, metrics
		}
	}
	t.checkpoint(p.FirstStep + p.Steps)
	return taken, metrics
}

// step does one; it returns the means of the metrics over its micro-batches.
func (t *trainer) step(step int) ([]float64, parts) {
	var took parts
	means := make([]float64, len(t.metrics))
	batches, size := t.plan.Accumulate, t.plan.Batch
	for micro := range batches {
		// The graph of the micro-batches but the last, which goes through that of the step.
		which := 1
		if micro == batches-1 {
			which = 0
		}
		t0 := now()
		t.gather(t.order[(step*batches+micro)*size:][:size])
		t1 := now()
		t.setHyper(step)
		t.bind(which)
		t2 := now()
		t.run(which)
		t3 := now()
		for i, metric := range t.metrics {
			means[i] += metric.number()
		}
		t4 := now()
		took.gather += t1 - t0
		took.bind += t2 - t1
		took.run += t3 - t2
		took.read += t4 - t3
	}
	for i := range means {
		means[i] /= float64(batches)
	}
	return means, took
}

// gather copies rows into the batch.
func (t *trainer) gather(rows []int64) {
	for _, one := range t.data {
		all, batch, width := one.all, one.batch, one.width
		for i, row := range rows {
			copy(batch[i*width:(i+1)*width], all[int(row)*width:])
		}
	}
}

// setHyper sets the hyper-parameters of a step. The binding's scalars cannot be written to: a new
// value is a new one.
func (t *trainer) setHyper(step int) {
	for _, one := range t.hyper {
		value, before := one.each[step], one.places[0]
		if before != nil && value == one.last {
			continue
		}
		one.places[0], one.last = must(ort.NewScalar(value)), value
		if before != nil {
			before.Destroy()
		}
	}
}

// bind binds what a graph's next run reads and writes, where that is not bound already. With CUDA
// binding an input copies it to the device.
func (t *trainer) bind(which int) {
	bound := t.graphs[which]
	made := bound.bindings[t.turns]
	if made == nil {
		made = &binding{must(bound.session.CreateIoBinding()), make([]ort.Value, len(bound.takes))}
		bound.bindings[t.turns] = made
		for _, output := range bound.gives {
			checkRun(made.BindOutput(output.name, t.slots[output.Link].at(t.turns, 1)))
		}
	}
	for i, input := range bound.takes {
		value := t.slots[input.Link].at(t.turns, 0)
		if value == made.inputs[i] && !t.onCUDA {
			continue
		}
		checkRun(made.BindInput(input.name, value))
		made.inputs[i] = value
	}
}

// run runs a graph that is bound, until the device has finished.
func (t *trainer) run(which int) {
	bound := t.graphs[which]
	checkRun(bound.session.RunWithBinding(bound.bindings[t.turns].IoBinding))
	t.turns ^= 1 << which
}

// number returns a metric of the last run.
func (s *slot) number() float64 {
	switch value := s.places[0].(type) {
	case *ort.Scalar[float32]:
		return float64(value.GetData())
	case *ort.Scalar[float64]:
		return value.GetData()
	}
	panic("a metric is float32 or float64")
}

// checkpoint writes the state after so many updates as the plan lays it out, by turns into one of
// two files.
func (t *trainer) checkpoint(done int) (finite bool) {
	begin, number := now(), t.next
	finite = true
	t.next = 1 - number
	file := must(os.Create(filepath.Join(t.out.folder, fmt.Sprintf("state-%d.bin", number))))
	for _, one := range t.state {
		raw := dtypes[one.Dtype].bytes(one.at(t.turns, 0))
		must(file.WriteAt(raw, one.Offset))
		finite = finite && isFinite(int(one.Dtype), raw)
	}
	check(file.Truncate(t.plan.StateBytes))
	check(file.Sync())
	check(file.Close())
	t.out.say(fields{"checkpoint": done, "slot": number, "ns": now() - begin})
	return finite
}

// isFinite tells whether numbers hold no NaN and no infinity: of those all bits of the exponent are
// set, which are in a number's last two bytes.
func isFinite(dtype int, raw []byte) bool {
	size := map[int]int{1: 4, 10: 2, 11: 8}[dtype]
	exponent := map[int]uint16{1: 0x7f80, 10: 0x7c00, 11: 0x7ff0}[dtype]
	for end := size; size > 0 && end <= len(raw); end += size {
		if (uint16(raw[end-1])<<8|uint16(raw[end-2]))&exponent == exponent {
			return false
		}
	}
	return true
}
