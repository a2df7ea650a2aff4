package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	ort "github.com/yalue/onnxruntime_go"
)

const (
	stepFormat  = "transect-portable-step"
	stepVersion = 1
)

// manifest is what a portable training step says of itself (docs/portable-training-step.md).
type manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// SHA-256 of step.onnx, by which a state file says to which step it belongs.
	StepGraph string        `json:"step_graph"`
	StateFile string        `json:"state_file"`
	Data      []dataTensor  `json:"data"`
	Hyper     []hyper       `json:"hyper"`
	Seed      *named        `json:"seed"`
	State     []stateTensor `json:"state"`
	// The first is the loss.
	Metrics []named `json:"metrics"`
	Graphs  struct {
		Step       *graph `json:"step"`
		Accumulate *graph `json:"accumulate"`
	} `json:"graphs"`
	// The place in State of the number of updates done.
	counter int
}

// named is a scalar.
type named struct {
	Name  string `json:"name"`
	Dtype dtyped `json:"dtype"`
}

type dataTensor struct {
	named
	// The first is the batch's; a name stands for any size.
	Shape []axis `json:"shape"`
}

type hyper struct {
	named
	Default *float64 `json:"default"`
}

type stateTensor struct {
	named
	Role  string   `json:"role"`
	Sizes []*int64 `json:"shape"`
	// The output that holds its next value; nil where a step leaves it alone.
	Next *string `json:"next"`
	// Of Sizes; its bytes fit into memory.
	shape ort.Shape
	bytes int
}

type graph struct {
	File    string   `json:"file"`
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
}

// dtyped reads the name of an element type.
type dtyped struct{ *dtype }

func (d *dtyped) UnmarshalJSON(text []byte) error {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	if d.dtype = dtypeNamed(name); d.dtype == nil {
		return fmt.Errorf("'%s' is none of %s", name, dtypeNames())
	}
	return nil
}

func (a *axis) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &a.name); err == nil {
		return nil
	}
	a.isSize = true
	return json.Unmarshal(text, &a.size)
}

// readManifest reads folder/manifest.json; its error names the first thing that cannot be used.
func readManifest(folder string) (*manifest, error) {
	file := filepath.Join(folder, "manifest.json")
	read := &manifest{}
	if err := readJSON(file, read, "the manifest of a step"); err != nil {
		return nil, err
	}
	if read.Format != stepFormat || read.Version != stepVersion {
		return nil, bad("%s: is '%s' of version %d, expected '%s' of version %d",
			file, read.Format, read.Version, stepFormat, stepVersion)
	}
	if err := read.check(); err != nil {
		return nil, bad("%s: %v", file, err)
	}
	read.StateFile = filepath.Join(folder, read.StateFile)
	for _, one := range []*graph{read.Graphs.Step, read.Graphs.Accumulate} {
		if one != nil {
			one.File = filepath.Join(folder, one.File)
		}
	}
	return read, read.checkSum()
}

// checkSum refuses a step.onnx of another export, or altered since: state files name it by its sum.
func (m *manifest) checkSum() error {
	file := m.Graphs.Step.File
	content, err := os.ReadFile(file)
	if err != nil {
		return bad("%s: cannot be read: %v", file, err)
	}
	if found := fmt.Sprintf("%x", sha256.Sum256(content)); found != m.StepGraph {
		return bad("%s has the sha256 %s, expected %s", file, found, m.StepGraph)
	}
	return nil
}

func (m *manifest) check() error {
	m.counter = -1
	names := map[string]bool{}
	for i := range m.State {
		if err := m.State[i].check(); err != nil {
			return err
		}
		name := m.State[i].Name
		if names[name] {
			return fmt.Errorf("state '%s' is there twice", name)
		}
		names[name] = true
		if m.counter < 0 && m.State[i].Role == "counter" {
			m.counter = i
		}
	}
	if m.counter < 0 {
		return fmt.Errorf("expected a state tensor with the role counter")
	}
	if counter := m.State[m.counter]; !counter.is("int64") || len(counter.shape) > 0 {
		return fmt.Errorf("counter '%s' is no int64 scalar", counter.Name)
	}
	for _, one := range m.Hyper {
		if !one.is("float64") || one.Default == nil {
			return fmt.Errorf("hyper-parameter '%s' is no float64 with a default", one.Name)
		}
	}
	for _, one := range m.Data {
		if one.Dtype.dtype == nil {
			return fmt.Errorf("data '%s' has no dtype", one.Name)
		}
	}
	for _, one := range m.Metrics {
		if !one.is("float32") && !one.is("float64") {
			return fmt.Errorf("metric '%s' is no float32 or float64", one.Name)
		}
	}
	if len(m.Metrics) == 0 {
		return fmt.Errorf("expected the loss as first metric")
	}
	if m.Seed != nil && !m.Seed.is("int64") {
		return fmt.Errorf("the seed is no int64")
	}
	return m.checkOutputs()
}

// checkOutputs complains unless each output is one thing, and the step gives every next value.
func (m *manifest) checkOutputs() error {
	if m.Graphs.Step == nil {
		return fmt.Errorf("expected graphs with one of the step")
	}
	names := map[string]bool{"": true}
	for _, metric := range m.Metrics {
		names[metric.Name] = true
	}
	for _, tensor := range m.State {
		if next := tensor.Next; next == nil {
			continue
		} else if names[*next] {
			return fmt.Errorf("output '%s' stands for two things", *next)
		} else if !slices.Contains(m.Graphs.Step.Outputs, *next) {
			return fmt.Errorf("graph 'step' does not give '%s'", *next)
		} else {
			names[*next] = true
		}
	}
	return nil
}

func (n *named) is(dtype string) bool {
	return n.Dtype.dtype != nil && n.Dtype.name == dtype
}

// check finds shape and size.
func (s *stateTensor) check() error {
	sized := tensor{name: s.Name, dtype: s.Dtype.dtype}
	if sized.dtype == nil || sized.dtype.onnx == onnxString {
		return fmt.Errorf("state '%s' is no tensor of numbers", s.Name)
	}
	count, err := elements(s.Sizes, &sized)
	if err != nil {
		return fmt.Errorf("state '%s' %w", s.Name, err)
	}
	s.shape, s.bytes = sized.shape, count*sized.dtype.size
	return nil
}

// graphs returns those of a step of so many micro-batches: that of the last of them first.
func (m *manifest) graphs(microBatches int) ([]*graph, error) {
	graphs := []*graph{m.Graphs.Step}
	if microBatches > 1 {
		if m.Graphs.Accumulate == nil {
			return nil, bad("--accumulate %d: the step has no graph 'accumulate', expected 1",
				microBatches)
		}
		graphs = append(graphs, m.Graphs.Accumulate)
	}
	for _, one := range graphs {
		if !isFile(one.File) {
			return nil, bad("%s: no such model file", one.File)
		}
		for _, metric := range m.Metrics {
			if !slices.Contains(one.Outputs, metric.Name) {
				return nil, bad("%s: does not give metric '%s', expected all of them",
					one.File, metric.Name)
			}
		}
	}
	return graphs, nil
}

// checkEnds complains unless the file takes and gives what the manifest says.
func (g *graph) checkEnds() error {
	ends, err := readModel(g.File)
	if err != nil {
		return err
	}
	if err := sameNames(ends.inputs, g.Inputs); err != nil {
		return bad("%s: takes %v", g.File, err)
	}
	if err := sameNames(ends.outputs, g.Outputs); err != nil {
		return bad("%s: gives %v", g.File, err)
	}
	return nil
}

func sameNames(ends []end, named []string) error {
	found := make([]string, len(ends))
	for i := range ends {
		found[i] = ends[i].name
	}
	wanted := slices.Sorted(slices.Values(named))
	if slices.Sort(found); !slices.Equal(found, wanted) {
		return fmt.Errorf("%q, the manifest says %q", found, wanted)
	}
	return nil
}
