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
	entries, err := parseHeader(text, of)
	if err == nil {
		err = checkLayout(entries, room)
	}
	if err != nil {
		return nil, err
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
		return nil, 0, fmt.Errorf("is no state of the step: it has %d bytes: %w", size, err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > uint64(min(longestHeader, size-headerPrefix)) {
		return nil, 0, fmt.Errorf("is no state of the step: its header has %d bytes, the file %d",
			length, size)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(file, text); err != nil {
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	}
	return text, size - headerPrefix - int64(length), nil
}

// parseHeader reads what is said of the tensors, no more than the manifest has, whose names are all
// different. It complains of another step's state at once: that has other tensors too.
func parseHeader(text []byte, of *manifest) (map[string]stateEntry, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') || !utf8.Valid(text) {
		return nil, fmt.Errorf("expected a JSON object in UTF-8 as header")
	}
	entries, seen := map[string]stateEntry{}, map[string]bool{}
	for decoder.More() && len(entries) <= len(of.State) {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("its header: %w", err)
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("'%s' is there twice", name)
		}
		if seen[name] = true; name == metadataKey {
			err = checkMetadata(decoder, of)
		} else {
			entries[name], err = parseEntry(decoder)
		}
		if err != nil {
			return nil, fmt.Errorf("'%s': %w", name, err)
		}
	}
	if len(entries) > len(of.State) {
		return nil, fmt.Errorf("has tensor '%s', which the step does not have", strange(entries, of))
	}
	if !seen[metadataKey] {
		return nil, fmt.Errorf("has no '%s', expected a state", metadataKey)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("its header: expected nothing after the object")
	}
	return entries, nil
}

// strange returns a tensor that the manifest does not have, of more than it has.
func strange(entries map[string]stateEntry, of *manifest) string {
	for i := range of.State {
		delete(entries, of.State[i].Name)
	}
	return slices.Min(slices.Collect(maps.Keys(entries)))
}

// checkMetadata complains unless it names the manifest's step.
func checkMetadata(decoder *json.Decoder, of *manifest) error {
	var metadata map[string]string
	if err := decoder.Decode(&metadata); err != nil {
		return err
	}
	if metadata["step_graph"] != of.StepGraph {
		return fmt.Errorf("is a state of step '%s', expected one of %s",
			metadata["step_graph"], of.StepGraph)
	}
	return nil
}

func parseEntry(decoder *json.Decoder) (stateEntry, error) {
	var entry stateEntry
	if err := decoder.Decode(&entry); err != nil {
		return entry, err
	}
	if entry.Shape == nil || len(entry.Offsets) != 2 || entry.Offsets[0] < 0 {
		return entry, fmt.Errorf("is %+v, expected a shape and two offsets", entry)
	}
	return entry, nil
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
