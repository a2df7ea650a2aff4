package main

import (
	"slices"

	ort "github.com/yalue/onnxruntime_go"
)

// trainer is the graphs of a step, and all that they read and write.
type trainer struct {
	provider  string
	graphs    []*boundGraph
	sessionNs int64
	state     []slot
	metrics   []ort.Value
	hyper     []ort.Value
	lastHyper []float64
	seed      ort.Value
	batch     *batch
	// A bit for each graph: whether it ran an odd number of times. Where each tensor of the state
	// lies follows from it.
	turns uint
}

// slot is a tensor of the state, in two places: a run reads the one and writes the other.
type slot struct {
	*stateTensor
	places []ort.Value
	// A bit for each graph that changes it.
	changed uint
}

// boundGraph is one graph of the step.
type boundGraph struct {
	session *ort.DynamicAdvancedSession
	inputs  []source
	outputs []source
	// By the trainer's turns, made when first needed.
	bindings [4]*binding
}

// source finds the value that an input or output is bound to.
type source struct {
	name string
	of   func(turns uint) ort.Value
}

// binding is ONNX Runtime's, and what is bound to each input.
type binding struct {
	*ort.IoBinding
	inputs []ort.Value
}

// newTrainer makes the sessions and lays out the state.
func newTrainer(
	args *arguments, opts *options, of *manifest, from *savedState, rows *batch,
) (*trainer, error) {
	graphs, err := of.graphs(args.accumulate)
	if err != nil {
		return nil, err
	}
	made := &trainer{provider: args.provider, batch: rows, hyper: make([]ort.Value, len(of.Hyper)),
		lastHyper: make([]float64, len(of.Hyper)), metrics: make([]ort.Value, len(of.Metrics))}
	if made.seed, err = ort.NewScalar(args.seed); err != nil {
		return nil, crash(err)
	}
	for i, metric := range of.Metrics {
		if made.metrics[i], err = makeRoom(metric.Dtype.dtype, nil); err != nil {
			return nil, crash(err)
		}
	}
	if err := made.begin(of, graphs, from); err != nil {
		return nil, err
	}
	for _, one := range graphs {
		bound, err := made.open(one, of, opts)
		if err != nil {
			return nil, err
		}
		made.graphs = append(made.graphs, bound)
	}
	return made, nil
}

// begin lays the state where the first run reads it.
func (t *trainer) begin(of *manifest, graphs []*graph, from *savedState) error {
	t.state = make([]slot, len(of.State))
	for i := range of.State {
		one := &t.state[i]
		one.stateTensor = &of.State[i]
		first, err := one.Dtype.over(one.shape, from.memory[i])
		if err != nil {
			return asFailure(err)
		}
		one.places = []ort.Value{first}
		for bit, given := range graphs {
			if one.Next != nil && slices.Contains(given.Outputs, *one.Next) {
				one.changed |= 1 << bit
			}
		}
		if one.changed == 0 {
			continue
		}
		second, err := makeRoom(one.Dtype.dtype, one.shape)
		if err != nil {
			return asFailure(err)
		}
		one.places = append(one.places, second)
	}
	return nil
}

// place is 1 when the graphs that change it ran an odd number of times in all, of two at most.
func (s *slot) place(turns uint) int {
	ran := turns & s.changed
	return int((ran ^ ran>>1) & 1)
}

func (s *slot) now(turns uint) ort.Value  { return s.places[s.place(turns)] }
func (s *slot) next(turns uint) ort.Value { return s.places[1-s.place(turns)] }

// open makes the session of a graph; it complains of an input or output that is not in the
// manifest.
func (t *trainer) open(given *graph, of *manifest, opts *options) (*boundGraph, error) {
	if err := given.checkEnds(); err != nil {
		return nil, err
	}
	bound := &boundGraph{}
	for _, name := range given.Inputs {
		find := t.input(name, of)
		if find == nil {
			return nil, bad("%s: input '%s' is not in the manifest", given.File, name)
		}
		bound.inputs = append(bound.inputs, source{name, find})
	}
	for _, name := range given.Outputs {
		find := t.output(name, of)
		if find == nil {
			return nil, bad("%s: output '%s' is not in the manifest", given.File, name)
		}
		bound.outputs = append(bound.outputs, source{name, find})
	}
	var took int64
	var err error
	bound.session, took, err = opts.open(given.File, given.Inputs, given.Outputs, t.provider, "")
	t.sessionNs += took
	return bound, err
}

// setHyper sets the hyper-parameters of a step, in the manifest's order. The binding's scalars
// cannot be written to: a new value is a new one.
func (t *trainer) setHyper(schedule []values, step int) error {
	for i := range schedule {
		value := schedule[i].at(step)
		if t.hyper[i] != nil && value == t.lastHyper[i] {
			continue
		}
		made, err := ort.NewScalar(value)
		if err != nil {
			return crash(err)
		}
		if t.hyper[i] != nil {
			t.hyper[i].Destroy()
		}
		t.hyper[i], t.lastHyper[i] = made, value
	}
	return nil
}

// bind binds what a graph's next run reads and writes, where that is not bound already. With CUDA
// binding an input copies it to the device.
func (t *trainer) bind(which int) error {
	bound := t.graphs[which]
	made := bound.bindings[t.turns]
	if made == nil {
		io, err := bound.session.CreateIoBinding()
		if err != nil {
			return crash(err)
		}
		made = &binding{io, make([]ort.Value, len(bound.inputs))}
		bound.bindings[t.turns] = made
		for _, output := range bound.outputs {
			if err := made.BindOutput(output.name, output.of(t.turns)); err != nil {
				return ofRun(err)
			}
		}
	}
	for i, input := range bound.inputs {
		value := input.of(t.turns)
		if value == made.inputs[i] && t.provider == "cpu" {
			continue
		}
		if err := made.BindInput(input.name, value); err != nil {
			return ofRun(err)
		}
		made.inputs[i] = value
	}
	return nil
}

// run runs a graph that is bound, until the device has finished.
func (t *trainer) run(which int) error {
	bound := t.graphs[which]
	if err := bound.session.RunWithBinding(bound.bindings[t.turns].IoBinding); err != nil {
		return ofRun(err)
	}
	t.turns ^= 1 << which
	return nil
}

// metric returns one of the last run.
func (t *trainer) metric(place int) float64 {
	switch value := t.metrics[place].(type) {
	case *ort.Scalar[float32]:
		return float64(value.GetData())
	case *ort.Scalar[float64]:
		return value.GetData()
	}
	panic("a metric is float32 or float64")
}

// snapshot returns the bytes of the state, in the manifest's order; false when a number is not
// finite.
func (t *trainer) snapshot() ([][]byte, bool) {
	all := make([][]byte, len(t.state))
	for i := range t.state {
		one := &t.state[i]
		memory, _ := one.Dtype.bytes(one.now(t.turns))
		if !areFinite(one.Dtype.name, memory) {
			return nil, false
		}
		all[i] = memory
	}
	return all, true
}

func (t *trainer) input(name string, of *manifest) func(uint) ort.Value {
	for i := range of.Data {
		if of.Data[i].Name == name {
			return func(uint) ort.Value { return t.batch.parts[i].value }
		}
	}
	for i := range of.Hyper {
		if of.Hyper[i].Name == name {
			return func(uint) ort.Value { return t.hyper[i] }
		}
	}
	if of.Seed != nil && of.Seed.Name == name {
		return func(uint) ort.Value { return t.seed }
	}
	for i := range t.state {
		if t.state[i].Name == name {
			return t.state[i].now
		}
	}
	return nil
}

func (t *trainer) output(name string, of *manifest) func(uint) ort.Value {
	for i := range of.Metrics {
		if of.Metrics[i].Name == name {
			return func(uint) ort.Value { return t.metrics[i] }
		}
	}
	for i := range t.state {
		if next := t.state[i].Next; next != nil && *next == name {
			return t.state[i].next
		}
	}
	return nil
}
