package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// times of one call's parts, in nanoseconds.
type times struct{ bind, run, copy int64 }

var start = time.Now()

// now reads the monotonic clock, in nanoseconds.
func now() int64 { return int64(time.Since(start)) }

var (
	modes = map[string]ort.ExecutionMode{
		"sequential": ort.ExecutionModeSequential,
		"parallel":   ort.ExecutionModeParallel,
	}
	optimizations = map[string]ort.GraphOptimizationLevel{
		"disabled": ort.GraphOptimizationLevelDisableAll,
		"basic":    ort.GraphOptimizationLevelEnableBasic,
		"extended": ort.GraphOptimizationLevelEnableExtended,
		"all":      ort.GraphOptimizationLevelEnableAll,
	}
)

// open makes a session and says how long that took, in nanoseconds. Making the options loads the
// provider's library, which is part of it.
func (p *plan) open(
	path string, inputs, outputs []*entry, profile string,
) (*ort.DynamicAdvancedSession, int64) {
	begin := now()
	made := p.sessionOptions(profile)
	defer made.Destroy()
	session, err := ort.NewDynamicAdvancedSession(path, namesOf(inputs), namesOf(outputs), made)
	if err != nil && !isOutOfMemory(err) {
		panic(bad("%s: %v", path, innermost(err)))
	}
	check(innermost(err))
	return session, now() - begin
}

// sessionOptions makes ONNX Runtime's. With a profile its profiler is on, and its log tells what
// options it has.
func (p *plan) sessionOptions(profile string) *ort.SessionOptions {
	made := must(ort.NewSessionOptions())
	for _, one := range p.of(roleOption) {
		if err := setOption(made, one.name, one.text); err != nil {
			panic(bad("option '%s': %v", one.name, err))
		}
	}
	if p.onCUDA() {
		p.appendCUDA(made)
	}
	severity := ort.LoggingLevel(ort.LoggingLevelError)
	if profile != "" {
		severity = ort.LoggingLevelInfo
		check(made.EnableProfiling(profile))
	}
	check(made.SetLogSeverityLevel(severity))
	return made
}

func setOption(made *ort.SessionOptions, name, text string) error {
	number, _ := strconv.Atoi(text)
	switch name {
	case "intra_op_num_threads":
		return made.SetIntraOpNumThreads(number)
	case "inter_op_num_threads":
		return made.SetInterOpNumThreads(number)
	case "execution_mode":
		return made.SetExecutionMode(modes[text])
	case "graph_optimization_level":
		return made.SetGraphOptimizationLevel(optimizations[text])
	case "enable_cpu_mem_arena":
		return made.SetCpuMemArena(number == 1)
	case "enable_mem_pattern":
		return made.SetMemPattern(number == 1)
	}
	return made.AddSessionConfigEntry(name, text)
}

func (p *plan) onCUDA() bool { return p.text(roleProvider) == "cuda" }

// appendCUDA adds the provider. The first call that needs its library loads it, which is setting
// options if there are any: what is then wrong is an option, or the library.
func (p *plan) appendCUDA(made *ort.SessionOptions) {
	texts := map[string]string{}
	for _, one := range p.of(roleProviderOption) {
		texts[one.name] = one.text
	}
	cuda, err := ort.NewCUDAProviderOptions()
	if err == nil {
		defer cuda.Destroy()
		err = cuda.Update(texts)
		if err != nil && !strings.Contains(err.Error(), "Failed to load") {
			panic(bad("option 'provider_options': %v", err))
		}
	}
	if err == nil {
		err = made.AppendExecutionProviderCUDA(cuda)
	}
	if err != nil {
		// It is never answered by falling back.
		panic(&failure{wasSkipped, "", fmt.Sprintf("the CUDA provider did not load: %v", err), false})
	}
}

// engine is one session.
type engine struct {
	session   *ort.DynamicAdvancedSession
	ends      []*entry
	onCUDA    bool
	sessionNs int64
	// What ONNX Runtime writes an output into; nil where it makes one itself.
	rooms  []ort.Value
	inputs []ort.Value
	// Of the last step, in the model's order, and what those of strings hold.
	outputs  []ort.Value
	texts    [][]string
	hasTexts bool
}

// newEngine opens the model of a case.
func newEngine(p *plan, group int32, profile string) *engine {
	given, wanted := p.of(roleInput, group), p.of(roleOutput, group)
	if len(given) == 0 {
		panic(unsupported("onnxruntime_go cannot run a model without inputs"))
	}
	made := &engine{
		ends: wanted, onCUDA: p.onCUDA(),
		outputs: make([]ort.Value, len(wanted)), texts: make([][]string, len(wanted)),
		rooms: make([]ort.Value, len(wanted)), inputs: make([]ort.Value, len(given)),
		hasTexts: slices.ContainsFunc(wanted, func(e *entry) bool { return e.Dtype == stringNumber }),
	}
	for _, output := range wanted {
		if strings.HasPrefix(output.text, "optional(") {
			// Of a value that is absent the binding asks the type, which ends the process.
			panic(unsupported("onnxruntime_go cannot take output '%s', %s", output.name, output.text))
		}
	}
	made.session, made.sessionNs = p.open(p.text(roleModel, group), given, wanted, profile)
	return made
}

// step binds the inputs, runs, and takes the texts out of strings; other outputs are in Go's
// memory when Run is done: in rooms, or where the binding has copied them to.
func (e *engine) step(feed []tensor) times {
	e.release()
	copy(e.outputs, e.rooms)
	t0 := now()
	for i := range feed {
		e.inputs[i] = feed[i].bind()
	}
	t1 := now()
	err := e.session.Run(e.inputs, e.outputs)
	t2 := now()
	if err != nil {
		// The binding may have left one that it could not make, and that cannot be given back.
		clear(e.outputs)
		checkRun(err)
	}
	if e.onCUDA {
		// Run copies to the device, so that the two are one part.
		t1 = t0
	}
	took := times{bind: t1 - t0, run: t2 - t1}
	if e.hasTexts {
		for i, output := range e.outputs {
			if texts, ok := output.(*ort.StringTensor); ok {
				e.texts[i] = stringsOf(texts)
			}
		}
		took.copy = now() - t2
	}
	return took
}

// checkRun tells what a run did not take, or the binding of what it gave, from what went wrong in
// it.
func checkRun(err error) {
	if err == nil {
		return
	}
	if strings.HasPrefix(err.Error(), "Error creating tensor from ort") {
		panic(unsupported("onnxruntime_go cannot take an output: %v", err))
	}
	if isRefusal(err) {
		panic(bad("%v", innermost(err)))
	}
	check(innermost(err))
}

// release gives back the values of the last step, outside of its times.
func (e *engine) release() {
	for i, room := range e.rooms {
		if e.outputs[i] == room {
			e.outputs[i] = nil
		}
	}
	destroy(e.inputs)
	destroy(e.outputs)
}

func destroy(values []ort.Value) {
	for i, value := range values {
		if value != nil {
			value.Destroy()
			values[i] = nil
		}
	}
}

// clear gives back the rooms and the values of the last step.
func (e *engine) clear() {
	e.release()
	destroy(e.rooms)
}

// close gives back all that ONNX Runtime holds.
func (e *engine) close() {
	e.clear()
	check(e.session.Destroy())
}

// prepare makes room for the outputs that the binding cannot take by itself: scalars, and types
// that Go does not have. Their shapes are those that the model declares; rows: of a batch, or -1.
func (e *engine) prepare(rows int64) {
	e.clear()
	for i, output := range e.ends {
		of, shape := dtypes[output.Dtype], output.shape.Clone()
		if of == nil || !of.isOdd && len(shape) > 0 {
			continue
		}
		if rows >= 0 && len(shape) > 0 {
			shape[0] = rows
		}
		if slices.Contains(shape, -1) {
			panic(unsupported("output '%s' is %s of shape %v: onnxruntime_go takes it only when "+
				"the model tells its shape", output.name, output.text, shape))
		}
		e.rooms[i] = of.room(shape)
	}
}

// alike returns what the outputs of the last step are like; without a type what is no tensor of
// numbers.
func (e *engine) alike() []tensor {
	found := make([]tensor, len(e.outputs))
	for i, value := range e.outputs {
		if value.GetONNXType() == ort.ONNXTypeTensor {
			found[i] = tensor{dtype: dtypes[int32(value.DataType())], shape: value.GetShape()}
		}
	}
	return found
}

// keep makes room for the outputs of full batches.
func (e *engine) keep(alike []tensor) {
	e.clear()
	for i, one := range alike {
		if one.dtype != nil {
			e.rooms[i] = one.dtype.room(one.shape)
		}
	}
}
