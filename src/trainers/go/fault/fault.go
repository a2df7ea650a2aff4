// Package fault holds errors with the cause that a rank's record tells (docs/trainer-contract.md).
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Causes of the contract.
const (
	OutOfMemory       = "out-of-memory"
	BadInput          = "bad-input"
	MissingDependency = "missing-dependency"
	Crash             = "crash"
)

// Fault is an error whose cause is known.
type Fault struct {
	Cause   string
	Message string
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// New makes a fault.
func New(cause, format string, arguments ...any) error {
	return &Fault{Cause: cause, Message: fmt.Sprintf(format, arguments...)}
}

// Bad makes a fault of what was given.
func Bad(format string, arguments ...any) error { return New(BadInput, format, arguments...) }

// CauseOf returns the cause of an error: a crash, unless somebody knew better.
func CauseOf(err error) string {
	var known *Fault
	if errors.As(err, &known) {
		return known.Cause
	}
	return Crash
}

// Recovered turns what a panic carried into an error that says where it was: in the first function below the
// panic that is not the runtime's, as the stack has it.
func Recovered(value any, stack []byte) error {
	if err, ok := value.(error); ok {
		var known *Fault
		if errors.As(err, &known) {
			return err
		}
	}
	return New(Crash, "panic: %v%s", value, below(string(stack)))
}

func below(stack string) string {
	_, stack, panicked := strings.Cut(stack, "\npanic(")
	lines := strings.Split(stack, "\n")
	// The panic's own file, then pairs of a function and its file.
	for i := 2; panicked && i+1 < len(lines); i += 2 {
		if !strings.HasPrefix(lines[i], "runtime.") {
			file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return fmt.Sprintf(", in %s (%s)", lines[i], file)
		}
	}
	return ""
}
