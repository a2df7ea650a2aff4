package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

const (
	magic    = "TDECK 1\n"
	row      = 8
	poseRows = 6
)

// deck is the prepared deck: arrays are by axis, ligand 3 x atoms, poses 6 x count.
type deck struct {
	atoms, others, kinds, count int
	ligand, protein             []float32
	ligandKinds, proteinKinds   []int32
	table, poses                []float32
}

func take[T float32 | int32](from *bytes.Reader, path string, count int) ([]T, error) {
	if from.Len()/4 < count {
		return nil, fmt.Errorf("%s ends early: expected %d more numbers", path, count)
	}
	numbers := make([]T, count)
	return numbers, binary.Read(from, binary.LittleEndian, numbers)
}

func kindsBelow(from *bytes.Reader, path string, count, limit int) ([]int32, error) {
	found, err := take[int32](from, path, count)
	for _, kind := range found {
		if kind < 0 || int(kind) >= limit {
			return nil, fmt.Errorf("%s: an atom of kind %d, there are %d", path, kind, limit)
		}
	}
	return found, err
}

func readDeck(path string) (*deck, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(content, []byte(magic)) {
		return nil, fmt.Errorf("%s is no prepared deck: expected it to begin with 'TDECK 1'", path)
	}
	from := bytes.NewReader(content[len(magic):])
	counts, err := take[int32](from, path, 4)
	if err != nil {
		return nil, err
	}
	for _, count := range counts {
		if count < 1 {
			return nil, fmt.Errorf("%s: expected four counts from 1 on, found %d", path, counts)
		}
	}
	d := &deck{atoms: int(counts[0]), others: int(counts[1]), kinds: int(counts[2]), count: int(counts[3])}
	for _, part := range []func() error{
		func() (err error) { d.ligand, err = take[float32](from, path, 3*d.atoms); return },
		func() (err error) { d.ligandKinds, err = kindsBelow(from, path, d.atoms, d.kinds); return },
		func() (err error) { d.protein, err = take[float32](from, path, 3*d.others); return },
		func() (err error) { d.proteinKinds, err = kindsBelow(from, path, d.others, d.kinds); return },
		func() (err error) { d.table, err = take[float32](from, path, d.kinds*d.kinds*row); return },
		func() (err error) { d.poses, err = take[float32](from, path, poseRows*d.count); return },
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	if from.Len() > 0 {
		return nil, fmt.Errorf("%s goes on after its last pose", path)
	}
	return d, nil
}
