package main

import (
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"
)

// model is what an ONNX file says of its ends. The binding wants their names before it has a
// session, and would load the model a second time to ask for them.
type model struct {
	inputs, outputs []end
	// Inputs that have a value when none is given.
	defaults map[string]bool
}

// end is an input or output.
type end struct {
	name string
	// Of a tensor: ONNX's number of its type.
	element  int
	hasShape bool
	axes     []axis
	// In ONNX's words, such as sequence(map(int64,float32)).
	kind     string
	optional bool
}

// axis is a size, or a name of one, or neither.
type axis struct {
	size   int64
	isSize bool
	name   string
}

func elementName(onnx int) string {
	if known := dtypeOf(onnx); known != nil {
		return known.name
	}
	return ort.TensorElementDataType(onnx).String()
}

// check complains unless the tensors are inputs of the model, in its types and shapes, and none
// is missing.
func (m *model) check(feed []tensor) error {
	var takes, gives []string
	fits := true
	for _, one := range m.inputs {
		given := slices.ContainsFunc(feed, func(t tensor) bool { return t.name == one.name })
		if !m.defaults[one.name] {
			takes = append(takes, one.name)
			fits = fits && (given || one.optional)
		}
	}
	for i := range feed {
		gives = append(gives, feed[i].name)
		at := slices.IndexFunc(m.inputs, func(e end) bool { return e.name == feed[i].name })
		if at < 0 {
			fits = false
		} else if err := m.inputs[at].check(&feed[i]); err != nil {
			return err
		}
	}
	if !fits {
		return bad("the model takes %q, --inputs gives %q", takes, gives)
	}
	return nil
}

func (e *end) check(given *tensor) error {
	if e.element != 0 && e.element != given.dtype.onnx {
		return bad("input '%s' is %s, the model takes %s", e.name, given.dtype.name, e.kind)
	}
	fits := !e.hasShape || len(e.axes) == len(given.shape)
	for i := 0; fits && i < len(e.axes); i++ {
		fits = !e.axes[i].isSize || e.axes[i].size == given.shape[i]
	}
	if !fits {
		return bad("input '%s' has shape %v, the model takes %s", e.name, given.shape, e.shapeText())
	}
	return nil
}

func (e *end) shapeText() string {
	texts := make([]string, len(e.axes))
	for i, one := range e.axes {
		texts[i] = one.name
		if one.isSize {
			texts[i] = fmt.Sprint(one.size)
		} else if one.name == "" {
			texts[i] = "?"
		}
	}
	return fmt.Sprint(texts)
}
