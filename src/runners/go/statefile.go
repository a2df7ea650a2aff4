package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

const (
	// Before the header stands its length, a uint64.
	headerPrefix = 8
	// What safetensors allows a header, in bytes.
	longestHeader = 100_000_000
	metadataKey   = "__metadata__"
)

// safetensors' words for the types; strings have none.
var safetensorsNames = map[string]string{
	"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16",
	"int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
	"uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
}

// stateEntry is what the header says of a tensor.
type stateEntry struct {
	Dtype string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	// Begin and end, from the first byte behind the header.
	Offsets []int64 `json:"data_offsets"`
}

// stateFile is an open state of the manifest's step, whose tensors are still to be read.
type stateFile struct {
	*os.File
	path string
	// Where each tensor begins, in the manifest's order.
	begins []int64
	// The number of updates done.
	step int
}

// openState opens a state; it complains unless that is one of the manifest's step, whole and
// nothing else.
func openState(path string, of *manifest) (*stateFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	state := &stateFile{File: file, path: path}
	if err := state.readHeader(of); err != nil {
		file.Close()
		return nil, bad("%s: %v", path, err)
	}
	return state, nil
}

func (s *stateFile) readHeader(of *manifest) error {
	text, room, err := s.headerText()
	if err != nil {
		return err
	}
	metadata, entries, err := parseHeader(text)
	if err == nil {
		err = checkLayout(entries, room)
	}
	if err != nil {
		return fmt.Errorf("is no safetensors file: %w", err)
	}
	if graph, ok := metadata["step_graph"]; !ok {
		return fmt.Errorf("has no 'step_graph' in its metadata, expected a state")
	} else if graph != of.StepGraph {
		return fmt.Errorf("is a state of step %s, expected one of %s", graph, of.StepGraph)
	}
	for i := range of.State {
		wanted := &of.State[i]
		entry, ok := entries[wanted.Name]
		if !ok {
			return fmt.Errorf("has no tensor '%s'", wanted.Name)
		}
		if err := entry.check(wanted); err != nil {
			return err
		}
		s.begins = append(s.begins, headerPrefix+int64(len(text))+entry.Offsets[0])
		delete(entries, wanted.Name)
	}
	for name := range entries {
		return fmt.Errorf("has tensor '%s', which the step does not have", name)
	}
	return s.readCounter(of.counter)
}

// headerText returns the header, and how many bytes are behind it.
func (s *stateFile) headerText() ([]byte, int64, error) {
	facts, err := s.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	}
	size := facts.Size()
	var prefix [headerPrefix]byte
	if _, err := io.ReadFull(s, prefix[:]); err != nil {
		return nil, 0, fmt.Errorf("is no safetensors file: it has %d bytes: %w", size, err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > uint64(min(longestHeader, size-headerPrefix)) {
		return nil, 0, fmt.Errorf("is no safetensors file: its header has %d bytes, the file %d",
			length, size)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(s, text); err != nil {
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	}
	return text, size - headerPrefix - int64(length), nil
}

func parseHeader(text []byte) (map[string]string, map[string]stateEntry, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, nil, fmt.Errorf("its header: %w", err)
	}
	var metadata map[string]string
	if told, ok := parts[metadataKey]; ok {
		if err := json.Unmarshal(told, &metadata); err != nil {
			return nil, nil, fmt.Errorf("its metadata: %w", err)
		}
		delete(parts, metadataKey)
	}
	entries := make(map[string]stateEntry, len(parts))
	for name, part := range parts {
		var entry stateEntry
		if err := json.Unmarshal(part, &entry); err != nil {
			return nil, nil, fmt.Errorf("tensor '%s': %w", name, err)
		}
		if entry.Shape == nil || len(entry.Offsets) != 2 {
			return nil, nil, fmt.Errorf("tensor '%s' has no shape or no two offsets", name)
		}
		entries[name] = entry
	}
	return metadata, entries, nil
}

// checkLayout complains unless the tensors follow on each other, without a gap, to the end.
func checkLayout(entries map[string]stateEntry, room int64) error {
	names := slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return slices.Compare(entries[a].Offsets, entries[b].Offsets)
	})
	end := int64(0)
	for _, name := range names {
		begin, next := entries[name].Offsets[0], entries[name].Offsets[1]
		if begin != end || next < begin {
			return fmt.Errorf("tensor '%s' is at bytes %d to %d, expected it to begin at %d",
				name, begin, next, end)
		}
		end = next
	}
	if end != room {
		return fmt.Errorf("its tensors end at byte %d of %d", end, room)
	}
	return nil
}

// check complains unless it is what the manifest says.
func (e *stateEntry) check(wanted *stateTensor) error {
	dtype := safetensorsNames[wanted.Dtype.name]
	if e.Dtype != dtype || !slices.Equal(e.Shape, wanted.shape) {
		return fmt.Errorf("tensor '%s' is %s of shape %v, expected %s of shape %v",
			wanted.Name, e.Dtype, e.Shape, dtype, wanted.shape)
	}
	if size := e.Offsets[1] - e.Offsets[0]; size != int64(wanted.bytes) {
		return fmt.Errorf("tensor '%s' has %d bytes, expected %d", wanted.Name, size, wanted.bytes)
	}
	return nil
}

func (s *stateFile) readCounter(place int) error {
	var raw [8]byte
	if err := s.readTensor(place, raw[:]); err != nil {
		return err
	}
	step := int64(binary.LittleEndian.Uint64(raw[:]))
	if step < 0 {
		return fmt.Errorf("has done %d steps, expected >= 0", step)
	}
	s.step = int(step)
	return nil
}

// readTensor reads one by its place in the manifest.
func (s *stateFile) readTensor(place int, memory []byte) error {
	if _, err := s.ReadAt(memory, s.begins[place]); err != nil {
		return bad("%s: cannot be read: %v", s.path, err)
	}
	return nil
}
