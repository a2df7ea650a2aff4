package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// What went wrong, by the exit code that the contract gives it.
const (
	failed     = 1
	badInput   = 2
	wasSkipped = 3
)

// failure is an error with the contract's exit code; cause is its word for it.
//
// Whatever goes wrong ends the program, or the case: so a failure is thrown, and caught there.
type failure struct {
	code    int
	cause   string
	message string
	// A value that this language cannot give or take: a case's verdict, else bad input.
	unsupported bool
}

func (f *failure) Error() string { return f.message }

// bad says that what was given cannot be used.
func bad(format string, parts ...any) *failure {
	return &failure{code: badInput, cause: "bad-input", message: fmt.Sprintf(format, parts...)}
}

func unsupported(format string, parts ...any) *failure {
	made := bad(format, parts...)
	made.unsupported = true
	return made
}

// told says it on standard error, and returns the last line's fields.
func (f *failure) told() fields {
	line := strings.Join(strings.Fields(f.message), " ")
	if f.code == wasSkipped {
		fmt.Fprintf(os.Stderr, "%s: skipped: %s\n", runnerName, line)
		return fields{"status": "skipped", "reason": f.message}
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", runnerName, line)
	return fields{"status": "failed", "cause": f.cause, "message": f.message}
}

// check throws an error, if there is one. Any but a failure is a crash; ONNX Runtime tells a lack
// of memory by its words alone.
func check(err error) {
	if err == nil {
		return
	}
	known := &failure{code: failed, cause: "crash", message: err.Error()}
	if !errors.As(err, &known) && isOutOfMemory(err) {
		known.cause = "out-of-memory"
	}
	panic(known)
}

func must[T any](made T, err error) T {
	check(err)
	return made
}

// caught calls work, and returns what was thrown in it. The binding panics on values that it did
// not think of.
func caught(work func()) (fault *failure) {
	defer func() {
		switch said := recover().(type) {
		case nil:
		case *failure:
			fault = said
		default:
			fault = &failure{failed, "crash", fmt.Sprintf("panic: %v", said), true}
		}
	}()
	work()
	return nil
}

// innermost returns the words of ONNX Runtime or of the system, without those around them.
func innermost(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

func isOutOfMemory(err error) bool {
	return says(err, "bad_alloc", "Failed to allocate memory", "out of memory")
}

// isRefusal tells whether a run ended because ONNX Runtime does not take an input. The binding does
// not hand on its codes: these are its words where it looks at the inputs, before any node runs.
func isRefusal(err error) bool {
	return says(err, "Got invalid dimensions for", "Invalid rank for", "Invalid input name",
		"Unexpected input data type", "expected to be of type", "Missing Input:")
}

func says(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.Contains(err.Error(), word)
	})
}

// fields of a line.
type fields map[string]any

// result is the folder that a program leaves, and the file of its lines.
type result struct {
	folder string
	lines  *json.Encoder
}

func newResult(folder string) *result {
	path := filepath.Join(folder, "result.jsonl")
	lines := json.NewEncoder(must(os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)))
	lines.SetEscapeHTML(false)
	return &result{folder, lines}
}

// say appends a line.
func (r *result) say(line fields) { check(r.lines.Encode(line)) }

// write writes rows as they lie in memory.
func write[T any](r *result, name string, rows []T) {
	check(os.WriteFile(filepath.Join(r.folder, name), memoryOf(rows), 0o666))
}

// copyProcess copies what the kernel says of the process; it reads all before it writes.
func (r *result) copyProcess() {
	status, maps := must(os.ReadFile("/proc/self/status")), must(os.ReadFile("/proc/self/maps"))
	write(r, "status.txt", status)
	write(r, "maps.txt", maps)
}

// joined is what all batches gave of an output; what is no tensor has no file.
type joined struct {
	dtype int32
	shape ort.Shape
	file  *os.File
}

// add writes what a run gave; rows are those of its batch, which every output must have, or -1.
func (j *joined) add(value ort.Value, rows int64, name, path string) {
	if value.GetONNXType() != ort.ONNXTypeTensor {
		return
	}
	// A scalar's shape is nil, which in JSON would be null.
	memory, shape := bytesOf(value), append(ort.Shape{}, value.GetShape()...)
	if rows >= 0 && (len(shape) == 0 || shape[0] != rows) {
		panic(bad("output '%s' has shape %v for a batch of %d rows, expected them first",
			name, shape, rows))
	}
	switch {
	case j.file == nil:
		j.dtype, j.shape, j.file = int32(value.DataType()), shape, must(os.Create(path))
	case !j.shape[1:].Equals(shape[1:]):
		panic(bad("output '%s' has shape %v after %v: batches cannot be joined",
			name, shape, j.shape))
	default:
		j.shape[0] += shape[0]
	}
	must(j.file.Write(memory))
}

// close returns type and shape; nil for what is no tensor.
func (j *joined) close() any {
	if j.file == nil {
		return nil
	}
	check(j.file.Close())
	return []any{j.dtype, j.shape}
}
