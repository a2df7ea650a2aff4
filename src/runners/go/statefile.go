package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"
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

// savedState is a state of the manifest's step, its tensors in the manifest's order.
type savedState struct {
	memory [][]byte
	// The number of updates done.
	step int
}

// readState reads a state; it complains unless that is one of the manifest's step, whole and nothing
// else, of finite numbers.
func readState(path string, of *manifest) (*savedState, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	defer file.Close()
	begins, err := readHeader(file, of)
	if err != nil {
		return nil, bad("%s: %v", path, err)
	}
	state := &savedState{}
	for i := range of.State {
		memory := room(of.State[i].bytes)
		if _, err := file.ReadAt(memory, begins[i]); err != nil {
			return nil, bad("%s: cannot be read: %v", path, err)
		}
		if !areFinite(of.State[i].Dtype.name, memory) {
			return nil, bad("%s: tensor '%s' has numbers that are not finite", path, of.State[i].Name)
		}
		state.memory = append(state.memory, memory)
	}
	step := int64(binary.LittleEndian.Uint64(state.memory[of.counter]))
	if step < 0 {
		return nil, bad("%s: has done %d steps, expected >= 0", path, step)
	}
	state.step = int(step)
	return state, nil
}

// readHeader returns where each tensor of the manifest begins in the file.
func readHeader(file *os.File, of *manifest) ([]int64, error) {
	text, room, err := headerText(file)
	if err != nil {
		return nil, err
	}
	metadata, entries, err := parseHeader(text)
	if err == nil {
		err = checkLayout(entries, room)
	}
	if err != nil {
		return nil, fmt.Errorf("is no safetensors file: %w", err)
	}
	if graph, ok := metadata["step_graph"]; !ok {
		return nil, fmt.Errorf("has no 'step_graph' in its metadata, expected a state")
	} else if graph != of.StepGraph {
		return nil, fmt.Errorf("is a state of step %s, expected one of %s", graph, of.StepGraph)
	}
	var begins []int64
	for i := range of.State {
		wanted := &of.State[i]
		entry, ok := entries[wanted.Name]
		if !ok {
			return nil, fmt.Errorf("has no tensor '%s'", wanted.Name)
		}
		if err := entry.check(wanted); err != nil {
			return nil, err
		}
		begins = append(begins, headerPrefix+int64(len(text))+entry.Offsets[0])
		delete(entries, wanted.Name)
	}
	for name := range entries {
		return nil, fmt.Errorf("has tensor '%s', which the step does not have", name)
	}
	return begins, nil
}

// headerText returns the header, and how many bytes are behind it.
func headerText(file *os.File) ([]byte, int64, error) {
	facts, err := file.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	}
	size := facts.Size()
	var prefix [headerPrefix]byte
	if _, err := io.ReadFull(file, prefix[:]); err != nil {
		return nil, 0, fmt.Errorf("is no safetensors file: it has %d bytes: %w", size, err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > uint64(min(longestHeader, size-headerPrefix)) {
		return nil, 0, fmt.Errorf("is no safetensors file: its header has %d bytes, the file %d",
			length, size)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(file, text); err != nil {
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	}
	return text, size - headerPrefix - int64(length), nil
}

func parseHeader(text []byte) (map[string]string, map[string]stateEntry, error) {
	parts, err := uniqueParts(text)
	if err != nil {
		return nil, nil, fmt.Errorf("its header: %w", err)
	}
	var metadata map[string]string
	entries := make(map[string]stateEntry, len(parts))
	for name, part := range parts {
		if name == metadataKey {
			if err := json.Unmarshal(part, &metadata); err != nil {
				return nil, nil, fmt.Errorf("'%s': %w", name, err)
			}
			continue
		}
		var entry stateEntry
		if err := json.Unmarshal(part, &entry); err != nil {
			return nil, nil, fmt.Errorf("'%s': %w", name, err)
		}
		if entry.Shape == nil || len(entry.Offsets) != 2 || entry.Offsets[0] < 0 {
			return nil, nil, fmt.Errorf("'%s' is %s, expected a shape and two offsets", name, part)
		}
		entries[name] = entry
	}
	return metadata, entries, nil
}

// uniqueParts reads a JSON object whose names are all different, which package json does not see to.
func uniqueParts(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("is no UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil {
		return nil, err
	} else if begin != json.Delim('{') {
		return nil, fmt.Errorf("expected an object, got %v", begin)
	}
	parts := map[string]json.RawMessage{}
	for decoder.More() {
		var part json.RawMessage
		key, err := decoder.Token()
		if err == nil {
			err = decoder.Decode(&part)
		}
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if _, twice := parts[name]; twice {
			return nil, fmt.Errorf("'%s' is there twice", name)
		}
		parts[name] = part
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("expected an object and nothing after it")
	}
	return parts, nil
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
