package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	ort "github.com/yalue/onnxruntime_go"
)

// tensor is an input, or rows of one, in the program's own memory.
type tensor struct {
	name  string
	dtype *dtype
	shape ort.Shape
	// One of the two.
	memory []byte
	texts  []string
}

// inputs are all tensors of a header; batch 0: they are not cut.
type inputs struct {
	tensors []tensor
	batch   int
}

type headerFile struct {
	Tensors *[]headerEntry `json:"tensors"`
	Batch   *int           `json:"batch"`
}

type headerEntry struct {
	Name  *string   `json:"name"`
	Dtype *string   `json:"dtype"`
	Shape *[]*int64 `json:"shape"`
	File  *string   `json:"file"`
}

// readJSON reads a file that holds one JSON value; expected says which.
func readJSON(path string, into any, expected string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return bad("%s: cannot be read: %v", path, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return bad("%s: expected %s: %v", path, expected, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return bad("%s: expected %s and nothing after it", path, expected)
	}
	return nil
}

// readInputs reads folder/header.json and its tensors; errors name file and entry.
func readInputs(folder string) (*inputs, error) {
	header := filepath.Join(folder, "header.json")
	var given headerFile
	if err := readJSON(header, &given, `{"tensors": [...], "batch": ...}`); err != nil {
		return nil, err
	}
	if given.Tensors == nil {
		return nil, bad(`%s: expected {"tensors": [...]}`, header)
	}
	found := &inputs{}
	for _, entry := range *given.Tensors {
		read, err := readTensor(folder, header, entry)
		if err != nil {
			return nil, err
		}
		for _, other := range found.tensors {
			if other.name == read.name {
				return nil, bad("%s: tensor '%s' is there twice", header, read.name)
			}
		}
		found.tensors = append(found.tensors, *read)
	}
	if given.Batch == nil {
		return found, nil
	}
	found.batch = *given.Batch
	rows := make([]int64, len(found.tensors))
	for i, one := range found.tensors {
		if len(one.shape) > 0 {
			rows[i] = one.shape[0]
		}
	}
	same := len(rows) > 0 && !slices.ContainsFunc(rows, func(n int64) bool { return n != rows[0] })
	if !same || found.batch < 1 || int64(found.batch) > rows[0] {
		return nil, bad("%s: needs N >= batch >= 1 rows, the same N in every tensor; "+
			"got batch %d and %v rows", header, found.batch, rows)
	}
	return found, nil
}

func readTensor(folder, header string, entry headerEntry) (*tensor, error) {
	if entry.Name == nil || entry.Dtype == nil || entry.Shape == nil || entry.File == nil {
		told, _ := json.Marshal(entry)
		return nil, bad("%s: expected tensors with name, dtype, shape, file, got %s", header, told)
	}
	read := &tensor{name: *entry.Name, dtype: dtypeNamed(*entry.Dtype)}
	if read.dtype == nil {
		return nil, bad("%s: tensor '%s' is '%s', expected one of %s",
			header, read.name, *entry.Dtype, dtypeNames())
	}
	count, err := elements(*entry.Shape, read)
	if err != nil {
		return nil, bad("%s: tensor '%s' %v", header, read.name, err)
	}
	path := *entry.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return read, read.load(path, count)
}

// elements fills the shape and returns how many elements it has.
func elements(axes []*int64, read *tensor) (int, error) {
	count, limit := int64(1), int64(math.MaxInt64)/int64(read.dtype.size)
	empty, overflows := false, false
	for _, axis := range axes {
		if axis == nil || *axis < 0 {
			return 0, bad("has a shape with an axis that is no size >= 0")
		}
		read.shape = append(read.shape, *axis)
		empty = empty || *axis == 0
		overflows = overflows || (*axis > 0 && count > limit / *axis)
		if !overflows && !empty {
			count *= *axis
		}
	}
	if empty {
		return 0, nil
	}
	if overflows {
		return 0, bad("has shape %v, which takes more bytes than there can be", read.shape)
	}
	return int(count), nil
}

// load reads the file, whose size is looked at before there is room for anything.
func (t *tensor) load(path string, count int) error {
	facts, err := os.Stat(path)
	if err != nil {
		return bad("%s: tensor '%s' cannot be read: %v", path, t.name, err)
	}
	size, least, word := facts.Size(), int64(count)*int64(t.dtype.size), ""
	fits := size == least
	if t.dtype.onnx == onnxString {
		// A string is at least its length.
		fits, word = size >= least, ">= "
	}
	if !facts.Mode().IsRegular() || !fits {
		return bad("%s: holds %d bytes, tensor '%s' of shape %v in %s takes %s%d",
			path, size, t.name, t.shape, t.dtype.name, word, least)
	}
	t.memory = room(int(size))
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		_, err = io.ReadFull(file, t.memory)
	}
	if err != nil {
		return bad("%s: tensor '%s' cannot be read: %v", path, t.name, err)
	}
	if t.dtype.name == "bool" && slices.ContainsFunc(t.memory, func(b byte) bool { return b > 1 }) {
		return bad("%s: tensor '%s': expected bytes of 0 and 1", path, t.name)
	}
	if t.dtype.onnx == onnxString {
		return t.partStrings(path, count)
	}
	return nil
}

func (t *tensor) partStrings(path string, count int) error {
	rest := t.memory
	t.texts = make([]string, count)
	t.memory = nil
	for i := range t.texts {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.LittleEndian.Uint32(rest)) {
			return bad("%s: tensor '%s': the file ends within string %d", path, t.name, i)
		}
		end := 4 + int(binary.LittleEndian.Uint32(rest))
		t.texts[i] = string(rest[4:end])
		rest = rest[end:]
		if !utf8.ValidString(t.texts[i]) {
			return bad("%s: tensor '%s': string %d is no UTF-8", path, t.name, i)
		}
	}
	if len(rest) > 0 {
		return bad("%s: tensor '%s': %d bytes are left after %d strings",
			path, t.name, len(rest), count)
	}
	return nil
}

// rows returns N when the tensors are cut into batches.
func (in *inputs) rows() (int, bool) {
	if in.batch == 0 {
		return 0, false
	}
	return int(in.tensors[0].shape[0]), true
}

// batches returns all batches in order, the last one perhaps partial, and how many are full.
func (in *inputs) batches() ([][]tensor, int) {
	rows, cut := in.rows()
	if !cut {
		return [][]tensor{in.tensors}, 1
	}
	var all [][]tensor
	for start := 0; start < rows; start += in.batch {
		end := min(start+in.batch, rows)
		feed := make([]tensor, len(in.tensors))
		for i := range in.tensors {
			feed[i] = in.tensors[i].cut(start, end)
		}
		all = append(all, feed)
	}
	return all, rows / in.batch
}

// cut returns some rows, over the same memory.
func (t *tensor) cut(start, end int) tensor {
	rows := *t
	row := 1
	for _, axis := range t.shape[1:] {
		row *= int(axis)
	}
	rows.shape = t.shape.Clone()
	rows.shape[0] = int64(end - start)
	if t.dtype.onnx == onnxString {
		rows.texts = t.texts[start*row : end*row]
	} else {
		width := row * t.dtype.size
		rows.memory = t.memory[start*width : end*width]
	}
	return rows
}

// bind makes a value over the memory; strings are ONNX Runtime's own copies.
func (t *tensor) bind() (ort.Value, error) {
	if t.dtype.onnx != onnxString {
		return t.dtype.over(t.shape, t.memory)
	}
	if len(t.shape) == 0 {
		return nil, unsupported("input '%s': onnxruntime_go has no scalars of strings", t.name)
	}
	for _, text := range t.texts {
		if bytes.IndexByte([]byte(text), 0) >= 0 {
			return nil, unsupported("input '%s': onnxruntime_go ends a string at a zero", t.name)
		}
	}
	value, err := ort.NewStringTensor(t.shape)
	if err != nil {
		return nil, err
	}
	return value, value.SetContents(t.texts)
}
