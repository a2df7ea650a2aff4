package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// batch is rows of the data, gathered into memory that stays where it is.
type batch struct {
	parts []batchPart
}

// batchPart is one of the manifest's data, in its order.
type batchPart struct {
	all *tensor
	// Bytes of a row.
	width  int
	memory []byte
	value  ort.Value
}

// readRows reads all rows of the data, in the manifest's order; it returns how many there are.
func readRows(folder string, of *manifest, size int) ([]*tensor, int64, error) {
	in, err := readInputs(folder)
	if err != nil {
		return nil, 0, err
	}
	header := filepath.Join(folder, "header.json")
	given := map[string]*tensor{}
	for i := range in.tensors {
		name := in.tensors[i].name
		if !slices.ContainsFunc(of.Data, func(d dataTensor) bool { return d.Name == name }) {
			return nil, 0, bad("%s: tensor '%s' is no data of the step", header, name)
		}
		given[name] = &in.tensors[i]
	}
	var all []*tensor
	for i := range of.Data {
		wanted := &of.Data[i]
		one, ok := given[wanted.Name]
		if !ok {
			return nil, 0, bad("%s: tensor '%s' is missing", header, wanted.Name)
		}
		if err := wanted.check(one, size); err != nil {
			return nil, 0, bad("%s: tensor '%s' %v", header, wanted.Name, err)
		}
		all = append(all, one)
		if one.shape[0] != all[0].shape[0] {
			return nil, 0, bad("%s: tensor '%s' has %d rows, expected as many in each",
				header, one.name, one.shape[0])
		}
	}
	if len(all) == 0 {
		return nil, 0, nil
	}
	return all, all[0].shape[0], nil
}

// check says what is wrong with all rows of it, when batches of so many are cut from them.
func (d *dataTensor) check(given *tensor, size int) error {
	fits := given.dtype == d.Dtype.dtype && len(given.shape) == len(d.Shape)
	for i := 1; fits && i < len(d.Shape); i++ {
		fits = !d.Shape[i].isSize || d.Shape[i].size == given.shape[i]
	}
	if !fits {
		return bad("is %s of shape %v, expected %s of shape %s",
			given.dtype.name, given.shape, d.Dtype.name, axesText(d.Shape))
	}
	if len(d.Shape) == 0 || given.dtype.onnx == onnxString {
		return bad("has no rows of numbers")
	}
	if first := d.Shape[0]; first.isSize && first.size != int64(size) {
		return bad("is for batches of %d rows, expected --batch %d", first.size, first.size)
	}
	return nil
}

func axesText(axes []axis) string {
	texts := make([]string, len(axes))
	for i, one := range axes {
		if texts[i] = one.name; one.isSize {
			texts[i] = strconv.FormatInt(one.size, 10)
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// newBatch makes room for a batch of the rows.
func newBatch(all []*tensor, size int) (*batch, error) {
	made := &batch{}
	for _, one := range all {
		part := batchPart{all: one}
		if one.shape[0] > 0 {
			part.width = len(one.memory) / int(one.shape[0])
		}
		part.memory = room(part.width * size)
		shape := one.shape.Clone()
		shape[0] = int64(size)
		var err error
		if part.value, err = one.dtype.over(shape, part.memory); err != nil {
			return nil, crash(err)
		}
		made.parts = append(made.parts, part)
	}
	return made, nil
}

// gather copies rows into the batch.
func (b *batch) gather(rows []int64) {
	for _, part := range b.parts {
		for i, row := range rows {
			from := int(row) * part.width
			copy(part.memory[i*part.width:(i+1)*part.width], part.all.memory[from:])
		}
	}
}
