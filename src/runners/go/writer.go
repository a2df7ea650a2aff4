package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"
)

// writer joins the outputs of batches along their first axis, as they come.
type writer struct {
	folder  string
	ends    []end
	entries []*outputEntry
	files   []*os.File
}

// outputEntry is what the header says of an output; one that is no tensor has its kind alone.
type outputEntry struct {
	Name  string     `json:"name"`
	Dtype string     `json:"dtype,omitempty"`
	Shape *ort.Shape `json:"shape,omitempty"`
	File  string     `json:"file,omitempty"`
	Kind  string     `json:"kind,omitempty"`
}

func newWriter(folder string, ends []end) (*writer, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, crash(err)
	}
	made := &writer{folder: folder, ends: ends}
	made.entries = make([]*outputEntry, len(ends))
	made.files = make([]*os.File, len(ends))
	return made, nil
}

func (w *writer) header() string { return filepath.Join(w.folder, "header.json") }

// add writes what a run gave; rows are those of its batch, which every output must have, or -1.
func (w *writer) add(values []ort.Value, rows int) error {
	for i, value := range values {
		dtype, memory, err := bytesOf(value)
		if err != nil {
			return err
		}
		if dtype == nil {
			w.entries[i] = &outputEntry{Name: w.ends[i].name, Kind: w.ends[i].kind}
			continue
		}
		shape := slices.Clone(value.GetShape())
		if shape == nil {
			// A scalar's, which in JSON is no null.
			shape = ort.Shape{}
		}
		if err := w.join(i, dtype, shape, rows); err != nil {
			return err
		}
		if _, err := w.files[i].Write(memory); err != nil {
			return crash(err)
		}
	}
	return nil
}

// join adds the rows of a part to its entry, and makes the file of the first one.
func (w *writer) join(i int, dtype *dtype, shape ort.Shape, rows int) error {
	name := w.ends[i].name
	if rows >= 0 && (len(shape) == 0 || shape[0] != int64(rows)) {
		return bad("output '%s' has shape %v for a batch of %d rows, expected them first",
			name, shape, rows)
	}
	entry := w.entries[i]
	if entry == nil {
		file := "output-" + strconv.Itoa(i) + ".bin"
		w.entries[i] = &outputEntry{Name: name, Dtype: dtype.name, Shape: &shape, File: file}
		var err error
		if w.files[i], err = os.Create(filepath.Join(w.folder, file)); err != nil {
			return crash(err)
		}
		return nil
	}
	before := *entry.Shape
	if entry.Dtype != dtype.name || !before[1:].Equals(shape[1:]) {
		return bad("output '%s' has shape %v after %v: batches cannot be joined",
			name, shape, before)
	}
	before[0] += shape[0]
	return nil
}

// finish closes the files and writes the header.
func (w *writer) finish() error {
	for _, file := range w.files {
		if file == nil {
			continue
		}
		if err := file.Close(); err != nil {
			return crash(err)
		}
	}
	text, err := json.Marshal(map[string]any{"tensors": w.entries})
	if err == nil {
		err = os.WriteFile(w.header(), append(text, '\n'), 0o666)
	}
	if err != nil {
		return crash(err)
	}
	return nil
}
