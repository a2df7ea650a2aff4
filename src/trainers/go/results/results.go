// Package results writes what a rank leaves (docs/trainer-contract.md): each file is whole or not there.
package results

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
)

// Name is what the names of a rank's files begin with.
func Name(rank int) string { return fmt.Sprintf("rank-%03d", rank) }

// Named is an array with its name in its group.
type Named struct {
	Name   string
	Shape  []int
	Values []float64
}

// Groups are arrays by group and name: the `arrays` of the facts.
type Groups map[string]map[string]plan.Array

// Write puts arrays of a group into a file of the rank's own, syncs it and notes where they are.
func (g Groups) Write(out string, rank int, group string, arrays []Named) error {
	file := fmt.Sprintf("%s-%s.bin", Name(rank), group)
	entries := map[string]plan.Array{}
	err := atomic(filepath.Join(out, file), func(stream *bufio.Writer) error {
		offset := int64(0)
		var bytes [8]byte
		for _, one := range arrays {
			entries[one.Name] = plan.Array{Dtype: "float64", Shape: one.Shape, File: file, Offset: offset}
			for _, value := range one.Values {
				binary.LittleEndian.PutUint64(bytes[:], math.Float64bits(value))
				if _, err := stream.Write(bytes[:]); err != nil {
					return err
				}
			}
			offset += 8 * int64(len(one.Values))
		}
		return nil
	})
	g[group] = entries
	return err
}

// Facts writes rank-RRR.json, the rank's last file.
func Facts(out string, rank int, facts map[string]any) error {
	return asJSON(filepath.Join(out, Name(rank)+".json"), facts)
}

// Place writes who the rank is before it trains, for the case that it never says it itself.
func Place(out string, rank int) error {
	return asJSON(filepath.Join(out, Name(rank)+".place.json"), map[string]any{"rank": rank, "pid": os.Getpid()})
}

// Fault writes rank-RRR.error.json.
func Fault(out string, rank int, err error) error {
	return asJSON(filepath.Join(out, Name(rank)+".error.json"), map[string]any{
		"rank": rank, "pid": os.Getpid(), "cause": fault.CauseOf(err), "message": err.Error(),
		"at": float64(time.Now().UnixNano()) / 1e9,
	})
}

func asJSON(path string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return atomic(path, func(stream *bufio.Writer) error {
		_, err := stream.Write(append(text, '\n'))
		return err
	})
}

// atomic writes beside the file's place, syncs and renames.
func atomic(path string, write func(*bufio.Writer) error) error {
	folder, name := filepath.Split(path)
	temporary := filepath.Join(folder, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	file, err := os.Create(temporary)
	if err != nil {
		return err
	}
	stream := bufio.NewWriter(file)
	if err = write(stream); err == nil {
		err = stream.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}
