package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What went wrong, by the exit code that the contract gives it.
const (
	failed     = 1
	badInput   = 2
	wasSkipped = 3
)

// failure is an error with the contract's exit code; cause is its word for the record.
type failure struct {
	code    int
	cause   string
	message string
	// A value that this language cannot give or take: a case's verdict, else bad input.
	unsupported bool
}

func (f *failure) Error() string { return f.message }

// bad says that what was given cannot be used.
func bad(format string, parts ...any) error {
	return &failure{code: badInput, cause: "bad-input", message: fmt.Sprintf(format, parts...)}
}

// skip says that the provider is not there. It is never answered by falling back.
func skip(format string, parts ...any) error {
	return &failure{code: wasSkipped, message: fmt.Sprintf(format, parts...)}
}

func unsupported(format string, parts ...any) error {
	message := fmt.Sprintf(format, parts...)
	return &failure{code: badInput, cause: "bad-input", message: message, unsupported: true}
}

func missing(format string, parts ...any) error {
	message := fmt.Sprintf(format, parts...)
	return &failure{code: failed, cause: "missing-dependency", message: message}
}

// crash wraps any other error; ONNX Runtime tells a lack of memory by its words alone.
func crash(err error) error {
	cause := "crash"
	if isOutOfMemory(err) {
		cause = "out-of-memory"
	}
	return &failure{code: failed, cause: cause, message: err.Error()}
}

// innermost returns ONNX Runtime's own words, without the binding's around them.
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

func asFailure(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	return asFailure(crash(err))
}
