package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// times of one call's parts, in nanoseconds.
type times struct{ bind, run, copy int64 }

var start = time.Now()

// now reads the monotonic clock, in nanoseconds.
func now() int64 { return int64(time.Since(start)) }

// engine is one session.
type engine struct {
	session   *ort.DynamicAdvancedSession
	model     *model
	provider  string
	sessionNs int64
	// What ONNX Runtime writes an output into; nil where it makes one itself.
	rooms  []ort.Value
	inputs []ort.Value
	// Of the last step, in the model's order, and what those of strings hold.
	outputs  []ort.Value
	texts    [][]string
	hasTexts bool
}

// loadRuntime loads the shared library and makes ONNX Runtime's environment.
func loadRuntime(library string) error {
	ort.SetSharedLibraryPath(library)
	if err := ort.InitializeEnvironment(); err != nil {
		return missing("%s: %v", library, err)
	}
	return nil
}

// open makes a session that is fed with these tensors.
func open(path string, feed []tensor, opts *options, provider, profile string) (*engine, error) {
	ends, err := readModel(path)
	if err != nil {
		return nil, err
	}
	if err := ends.check(feed); err != nil {
		return nil, err
	}
	if len(feed) == 0 {
		return nil, unsupported("onnxruntime_go cannot run a model without inputs")
	}
	given := make([]string, len(feed))
	for i := range feed {
		given[i] = feed[i].name
	}
	wanted := make([]string, len(ends.outputs))
	for i, output := range ends.outputs {
		if output.optional {
			// Of a value that is absent the binding asks the type, which ends the process.
			return nil, unsupported("onnxruntime_go cannot take output '%s', a %s",
				output.name, output.kind)
		}
		wanted[i] = output.name
	}
	session, sessionNs, err := opts.open(path, given, wanted, provider, profile)
	if err != nil {
		return nil, err
	}
	return &engine{
		session: session, model: ends, provider: provider, sessionNs: sessionNs,
		outputs: make([]ort.Value, len(wanted)), texts: make([][]string, len(wanted)),
		rooms: make([]ort.Value, len(wanted)), inputs: make([]ort.Value, len(given)),
		hasTexts: slices.ContainsFunc(ends.outputs, func(o end) bool { return o.element == onnxString }),
	}, nil
}

// open makes a session and says how long that took, in nanoseconds. Making the options loads the
// provider's library, which is part of it.
func (o *options) open(
	path string, inputs, outputs []string, provider, profile string,
) (*ort.DynamicAdvancedSession, int64, error) {
	begin := now()
	made, err := o.session(provider, profile)
	if err != nil {
		return nil, 0, err
	}
	defer made.Destroy()
	session, err := ort.NewDynamicAdvancedSession(path, inputs, outputs, made)
	if err != nil && isOutOfMemory(err) {
		return nil, 0, crash(innermost(err))
	}
	if err != nil {
		return nil, 0, bad("%s: %v", path, innermost(err))
	}
	return session, now() - begin, nil
}

// step binds the inputs, runs, and takes the texts out of strings; other outputs are in Go's
// memory when Run is done: in rooms, or where the binding has copied them to.
func (e *engine) step(feed []tensor) (times, error) {
	e.release()
	copy(e.outputs, e.rooms)
	t0 := now()
	for i := range feed {
		value, err := feed[i].bind()
		if err != nil {
			return times{}, err
		}
		e.inputs[i] = value
	}
	t1 := now()
	if err := e.run(); err != nil {
		return times{}, err
	}
	t2 := now()
	if e.provider == "cuda" {
		// Run copies to the device, so that the two are one part.
		t1 = t0
	}
	took := times{bind: t1 - t0, run: t2 - t1}
	if e.hasTexts {
		err := e.takeTexts()
		took.copy = now() - t2
		return took, err
	}
	return took, nil
}

// takeTexts copies strings out of ONNX Runtime's memory.
func (e *engine) takeTexts() (err error) {
	for i, output := range e.outputs {
		texts, ok := output.(*ort.StringTensor)
		if !ok {
			continue
		}
		if e.texts[i], err = stringsOf(texts); err != nil {
			return crash(err)
		}
	}
	return nil
}

// run calls ONNX Runtime; what the binding cannot make a value of is not its fault.
func (e *engine) run() (err error) {
	err = e.session.Run(e.inputs, e.outputs)
	if err != nil && strings.HasPrefix(err.Error(), "Error creating tensor from ort") {
		return unsupported("onnxruntime_go cannot take an output: %v", err)
	}
	return ofRun(err)
}

// ofRun tells what a run did not take from what went wrong in it.
func ofRun(err error) error {
	if err == nil {
		return nil
	}
	if isRefusal(err) {
		return bad("%v", innermost(err))
	}
	return crash(innermost(err))
}

// release gives back the values of the last step, outside of its times.
func (e *engine) release() {
	for i, value := range e.inputs {
		if value != nil {
			value.Destroy()
			e.inputs[i] = nil
		}
	}
	for i, value := range e.outputs {
		if value != nil && value != e.rooms[i] {
			value.Destroy()
		}
		e.outputs[i] = nil
	}
}

// prepare makes room for the outputs of a feed that the binding cannot take by itself: scalars,
// and types that Go does not have. Their shapes are those that the model declares.
func (e *engine) prepare(feed []tensor) error {
	e.clear()
	for i, output := range e.model.outputs {
		of := dtypeOf(output.element)
		hasType := of != nil && of.onnx != onnxString
		isScalar := output.hasShape && len(output.axes) == 0
		isOdd := hasType && (of.name == "float16" || of.name == "bfloat16")
		if !hasType || !(isOdd || isScalar) {
			continue
		}
		shape, err := e.model.shapeOf(&output, feed)
		if err != nil {
			return err
		}
		if e.rooms[i], err = makeRoom(of, shape); err != nil {
			return err
		}
	}
	return nil
}

// clear gives back the rooms and the values of the last step.
func (e *engine) clear() {
	e.release()
	for i, value := range e.rooms {
		if value != nil {
			value.Destroy()
			e.rooms[i] = nil
		}
	}
}

// keep makes room for the outputs of full batches.
func (e *engine) keep(alike []likeness) error {
	e.clear()
	for i, one := range alike {
		var err error
		if one.dtype == nil {
			continue
		}
		if e.rooms[i], err = makeRoom(one.dtype, one.shape); err != nil {
			return err
		}
	}
	return nil
}

func makeRoom(of *dtype, shape ort.Shape) (ort.Value, error) {
	size := of.size
	for _, axis := range shape {
		size *= int(axis)
	}
	return of.over(shape, room(size))
}

// likeness is type and shape of an output; no type: of strings or of no tensor.
type likeness struct {
	dtype *dtype
	shape ort.Shape
}

func likenessOf(value ort.Value) likeness {
	for _, known := range dtypes {
		if _, ok := known.bytes(value); ok {
			return likeness{known, value.GetShape()}
		}
	}
	return likeness{}
}

// shapeOf returns the shape that the model declares, with the sizes that the feed has.
func (m *model) shapeOf(output *end, feed []tensor) (ort.Shape, error) {
	sizes := map[string]int64{}
	for _, input := range m.inputs {
		at := slices.IndexFunc(feed, func(t tensor) bool { return t.name == input.name })
		for i, one := range input.axes {
			if at >= 0 && one.name != "" {
				sizes[one.name] = feed[at].shape[i]
			}
		}
	}
	shape := make(ort.Shape, len(output.axes))
	known := output.hasShape
	for i, one := range output.axes {
		size, named := sizes[one.name]
		if shape[i] = size; one.isSize {
			shape[i] = one.size
		}
		known = known && (one.isSize || named)
	}
	if !known {
		return nil, unsupported("output '%s' is %s of shape %s: onnxruntime_go takes it only when "+
			"the model tells its shape", output.name, output.kind, output.shapeText())
	}
	return shape, nil
}

// endProfile closes the session, and with it the profile: the binding cannot end it otherwise.
func (e *engine) endProfile(prefix string, before []string) (string, error) {
	e.release()
	if err := e.session.Destroy(); err != nil {
		return "", crash(err)
	}
	for _, file := range profiles(prefix) {
		if !slices.Contains(before, file) {
			return file, nil
		}
	}
	return "", crash(fmt.Errorf("%s: ONNX Runtime wrote no profile", prefix))
}
