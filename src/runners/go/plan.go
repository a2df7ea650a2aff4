package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// order is the rows of all batches, one behind the other.
type order struct {
	path  string
	rows  []int64
	batch int
}

// readOrder reads as many batches as there are until the last step.
func readOrder(args *arguments) (*order, error) {
	path := args.order
	facts, err := os.Stat(path)
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	batches, size := float64(args.until)*float64(args.accumulate), facts.Size()
	// In floating point: the product may not fit into an integer, and then it is too much anyway.
	if size%8 != 0 || batches*float64(args.batch)*8 > float64(size) {
		return nil, bad("%s: holds %d bytes, expected int64 rows of %.0f batches of %d",
			path, size, batches, args.batch)
	}
	raw := make([]byte, args.until*args.accumulate*args.batch*8)
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		_, err = io.ReadFull(file, raw)
	}
	if err != nil {
		return nil, bad("%s: cannot be read: %v", path, err)
	}
	read := &order{path: path, batch: args.batch, rows: make([]int64, len(raw)/8)}
	for i := range read.rows {
		read.rows[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return read, nil
}

// check complains of a row that the data do not have.
func (o *order) check(rows int64) error {
	for i, row := range o.rows {
		if row < 0 || row >= rows {
			return bad("%s: entry %d is row %d, the data have %d rows", o.path, i, row, rows)
		}
	}
	return nil
}

// of returns the rows of a batch, counted from the first one of step 0.
func (o *order) of(batch int) []int64 { return o.rows[batch*o.batch : (batch+1)*o.batch] }

// values of a hyper-parameter: one for each step from 0, or the same always.
type values struct {
	always float64
	each   []float64
}

func (v *values) at(step int) float64 {
	if v.each == nil {
		return v.always
	}
	return v.each[step]
}

// parseValues reads a number or a list of at least so many.
func parseValues(text json.RawMessage, until int) (values, error) {
	wrong := fmt.Errorf("is %.100s, expected a number or a list of numbers", text)
	// Package json takes null for any number, but not for one that is pointed to.
	var each []*float64
	if err := json.Unmarshal(text, &each); err != nil || each == nil {
		var always *float64
		if err := json.Unmarshal(text, &always); err != nil || always == nil {
			return values{}, wrong
		}
		return values{always: *always}, nil
	}
	if len(each) < until {
		return values{}, fmt.Errorf("has %d values, expected one for each of %d steps",
			len(each), until)
	}
	found := values{each: make([]float64, len(each))}
	for i, value := range each {
		if value == nil {
			return values{}, wrong
		}
		found.each[i] = *value
	}
	return found, nil
}

// readSchedule reads the file, if there is one; it returns values in the manifest's order.
func readSchedule(file string, known []hyper, until int) ([]values, error) {
	schedule, names := make([]values, len(known)), make([]string, len(known))
	for i, one := range known {
		names[i], schedule[i].always = one.Name, *one.Default
	}
	if file == "" {
		return schedule, nil
	}
	var given map[string]json.RawMessage
	if err := readJSON(file, &given, "hyper-parameters by name"); err != nil {
		return nil, err
	}
	if given == nil {
		return nil, bad("%s: expected hyper-parameters by name, got null", file)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := slices.Index(names, name)
		if at < 0 {
			return nil, bad("%s: hyper-parameter '%s', expected one of %s",
				file, name, strings.Join(names, ", "))
		}
		var err error
		if schedule[at], err = parseValues(given[name], until); err != nil {
			return nil, bad("%s: hyper-parameter '%s' %v", file, name, err)
		}
	}
	return schedule, nil
}
