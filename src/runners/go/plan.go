package main

import (
	"encoding/binary"
	"os"

	ort "github.com/yalue/onnxruntime_go"
)

const (
	roleLibrary = iota + 1
	roleProvider
	roleOut
	roleOption
	roleProviderOption
	roleModel
	roleOutputs
	roleInput
	roleOutput
	roleProfile
	roleArrivals
	roleGraph
	roleState
	roleData
	roleHyper
	roleSeed
	roleMetric
	roleOrder
	roleTakes
	roleGives
)

const (
	byteOrderMark = 0x01020304
	headerSize    = 192
	entrySize     = 128
)

// header is as the file has it.
type header struct {
	Magic                                                      [8]byte
	Mark, Version                                              uint32
	Size                                                       int64
	Level, Count                                               uint32
	Batch, Rows, Warmup, MinRuns, MaxNs, Sessions, LastBeginNs int
	FirstStep, Steps, CheckpointEvery, Accumulate              int
	Seed, StateBytes                                           int64
	_                                                          [7]int64
}

// row is an entry as the file has it.
type row struct {
	Role, Group, Dtype, Axes, Link, _                int32
	NameAt, NameSize, TextAt, TextSize, Offset, Size int64
	Shape                                            [7]int64
}

type entry struct {
	*row
	name, text string
	shape      ort.Shape
}

type plan struct {
	*header
	entries []entry
}

// readPlan refuses what is no plan; what a plan says was checked when it was made.
func readPlan(path string) *plan {
	raw, err := os.ReadFile(path)
	if err != nil {
		panic(bad("%s: cannot be read: %v", path, innermost(err)))
	}
	order, size := binary.NativeEndian, uint64(len(raw))
	if size < 24 || string(raw[:8]) != "TRANSECT" {
		panic(bad("%s: is no plan, expected a file that begins with TRANSECT", path))
	}
	if mark := order.Uint32(raw[8:]); mark != byteOrderMark {
		panic(bad("%s: is of another byte order: mark 0x%08x, expected 0x%08x",
			path, mark, byteOrderMark))
	}
	if version := order.Uint32(raw[12:]); version != 1 {
		panic(bad("%s: is of version %d, expected 1", path, version))
	}
	if said := order.Uint64(raw[16:]); said != size || size < headerSize {
		panic(bad("%s: holds %d bytes, expected %d", path, size, said))
	}
	read := &plan{header: &view[header](raw[:headerSize])[0]}
	rows := view[row](raw[headerSize : headerSize+entrySize*int(read.Count)])
	for i := range rows {
		one := &rows[i]
		read.entries = append(read.entries, entry{
			row:   one,
			name:  string(raw[one.NameAt : one.NameAt+one.NameSize]),
			text:  string(raw[one.TextAt : one.TextAt+one.TextSize]),
			shape: one.Shape[:one.Axes],
		})
	}
	return read
}

// of returns the entries of a role, in their order: all, or those of one case or graph.
func (p *plan) of(role int32, group ...int32) []*entry {
	var found []*entry
	for i := range p.entries {
		one := &p.entries[i]
		if one.Role == role && (group == nil || one.Group == group[0]) {
			found = append(found, one)
		}
	}
	return found
}

// text returns that of the only such entry, or "".
func (p *plan) text(role int32, group ...int32) string {
	if found := p.of(role, group...); len(found) > 0 {
		return found[0].text
	}
	return ""
}

func namesOf(entries []*entry) []string {
	names := make([]string, len(entries))
	for i, one := range entries {
		names[i] = one.name
	}
	return names
}

// data reads an entry's bytes into Go's own memory: that is what the binding makes tensors over.
func (e *entry) data() []byte {
	memory := room(int(e.Size))
	file, err := os.Open(e.text)
	if err == nil {
		defer file.Close()
		_, err = file.ReadAt(memory, e.Offset)
	}
	if err != nil {
		panic(bad("%s: cannot be read: %v", e.text, innermost(err)))
	}
	return memory
}

// batches returns the inputs of a case, cut into batches, of which the last may be partial; and
// the full ones.
func (p *plan) batches(group int32) (all, full [][]tensor) {
	var whole []tensor
	for _, one := range p.of(roleInput, group) {
		whole = append(whole, one.tensor())
	}
	if p.Batch == 0 {
		all = [][]tensor{whole}
		return all, all
	}
	for start := 0; start < p.Rows; start += p.Batch {
		feed := make([]tensor, len(whole))
		for i := range whole {
			feed[i] = whole[i].cut(start, min(start+p.Batch, p.Rows))
		}
		all = append(all, feed)
	}
	return all, all[:p.Rows/p.Batch]
}

// rowsOf returns those of a batch, or -1 when the tensors are whole.
func (p *plan) rowsOf(feed []tensor) int64 {
	if p.Batch == 0 {
		return -1
	}
	return feed[0].shape[0]
}
