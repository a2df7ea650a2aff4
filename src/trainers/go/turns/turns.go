// Package turns lets a rank wait for its turn between two steps: what measure/turns.py is to a trainer in Python.
package turns

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

const variable = "TRANSECT_TURNS"

// Turns is a rank's place among those that take turns. Without the variable there is nobody to wait for.
type Turns struct {
	engine net.Conn
	// Steps before the next word with the engine; none is asked for while this is negative.
	left int64
}

// Join connects to who gives turns. A rank that cannot must not train: it would disturb others.
func Join() (*Turns, error) {
	given := os.Getenv(variable)
	if given == "" {
		return &Turns{left: -1}, nil
	}
	at := strings.LastIndex(given, ":")
	engine, err := net.Dial("tcp", given[:max(0, at)])
	if err == nil {
		_, err = io.WriteString(engine, given[at+1:])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return &Turns{engine: engine, left: -1}, nil
}

// Taken tells whether there is anybody to wait for.
func (t *Turns) Taken() bool { return t.engine != nil }

// Begin waits for the first turn: everything is set up.
func (t *Turns) Begin() error { return t.ask("r") }

// Step counts a step that is over, and tells whether the turn is, so that Wait is due.
func (t *Turns) Step() bool {
	if t.left > 0 {
		t.left--
	}
	return t.left == 0
}

// Wait says that the turn is over, and waits for the next one.
func (t *Turns) Wait() error { return t.ask("d") }

// End says that there is no work left.
func (t *Turns) End() error {
	if t.left < 0 {
		return nil
	}
	t.left = -1
	_, err := io.WriteString(t.engine, "e")
	return err
}

func (t *Turns) ask(word string) error {
	var order [8]byte
	_, err := io.WriteString(t.engine, word)
	if err == nil {
		_, err = io.ReadFull(t.engine, order[:])
	}
	if err != nil {
		return fmt.Errorf("%s: the engine that gives turns has gone: %w", variable, err)
	}
	if t.left = int64(binary.LittleEndian.Uint64(order[:])); t.left == 0 {
		// The measurement is over, and nobody waits any more.
		t.left = -1
	}
	return nil
}
