package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// oneCase is an entry of --cases.
type oneCase struct {
	Name    *string `json:"name"`
	Model   *string `json:"model"`
	Inputs  *string `json:"inputs"`
	Outputs *string `json:"outputs"`
}

// verdict is a line of the record.
type verdict struct {
	Case    int    `json:"case"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// runCases runs the cases from --skip on, and appends to the record what came of each.
func runCases(args *arguments, opts *options) error {
	var cases []oneCase
	expected := "a list of cases with name, model, inputs, outputs"
	if err := readJSON(args.cases, &cases, expected); err != nil {
		return err
	}
	for _, one := range cases {
		if one.Name == nil || one.Model == nil || one.Inputs == nil || one.Outputs == nil {
			told, _ := json.Marshal(one)
			return bad("%s: expected %s, got %s", args.cases, expected, told)
		}
	}
	if err := loadRuntime(args.library); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(args.record), 0o777); err != nil {
		return crash(err)
	}
	record, err := os.OpenFile(args.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return crash(err)
	}
	defer record.Close()
	lines := json.NewEncoder(record)
	for i := args.first; i < len(cases); i++ {
		told := verdict{Case: i, Name: *cases[i].Name, Status: "started"}
		if err := lines.Encode(told); err != nil {
			return crash(err)
		}
		told.Status = "ok"
		if err := runCase(cases[i], args, opts); err != nil {
			told.Status, told.Message = "failed", err.Error()
			if asFailure(err).unsupported {
				told.Status = "unsupported"
			}
		}
		if err := lines.Encode(told); err != nil {
			return crash(err)
		}
	}
	return nil
}

// runCase runs one case in a session of its own. The binding panics on values that it did not
// think of.
func runCase(one oneCase, args *arguments, opts *options) (err error) {
	defer func() {
		if said := recover(); said != nil {
			err = unsupported("onnxruntime_go panicked: %v", said)
		}
	}()
	in, err := readInputs(*one.Inputs)
	if err != nil {
		return err
	}
	batches, _ := in.batches()
	engine, err := open(*one.Model, batches[0], opts, args.provider, "")
	if err != nil {
		return err
	}
	defer engine.close()
	_, _, err = engine.allRows(in, *one.Outputs)
	return err
}

// close gives back what ONNX Runtime holds.
func (e *engine) close() {
	e.clear()
	if err := e.session.Destroy(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", runnerName, err)
	}
}
