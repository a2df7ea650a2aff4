package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// checkpoint writes states of one step to one file: the same state is the same file in every
// language.
type checkpoint struct {
	path, temporary string
	// The same of every state.
	header []byte
}

func newCheckpoint(path string, of *manifest) *checkpoint {
	folder, name := filepath.Split(path)
	temporary := filepath.Join(folder, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	return &checkpoint{path, temporary, stateHeader(of)}
}

// removeLeft removes temporary files of this checkpoint that killed runs left; of runs that go on
// they stay.
func (c *checkpoint) removeLeft() {
	folder, name := filepath.Split(c.path)
	if folder == "" {
		folder = "."
	}
	files, _ := os.ReadDir(folder)
	for _, file := range files {
		number, found := strings.CutPrefix(file.Name(), "."+name+".")
		if _, err := strconv.ParseUint(number, 10, 64); !found || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + number); os.IsNotExist(err) {
			os.Remove(filepath.Join(folder, file.Name()))
		}
	}
}

// write writes the tensors, which stand in the manifest's order; where that fails, the file of
// before stays.
func (c *checkpoint) write(tensors [][]byte) error {
	if err := c.replace(tensors); err != nil {
		os.Remove(c.temporary)
		return crash(fmt.Errorf("%s: cannot be written: %w", c.path, err))
	}
	return nil
}

func (c *checkpoint) replace(tensors [][]byte) error {
	folder := filepath.Dir(c.path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := writeSynced(c.temporary, append([][]byte{c.header}, tensors...)); err != nil {
		return err
	}
	if err := os.Rename(c.temporary, c.path); err != nil {
		return err
	}
	// The name too must outlast a power cut.
	named, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer named.Close()
	return named.Sync()
}

func writeSynced(path string, parts [][]byte) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	buffered := bufio.NewWriter(file)
	for _, part := range parts {
		if _, err := buffered.Write(part); err != nil {
			return err
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Sync()
}

// stateHeader returns a header's length and the header, filled up with spaces.
func stateHeader(of *manifest) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, `{"%s":{"step_graph":%s}`, metadataKey, quoted(of.StepGraph))
	begin := 0
	for i := range of.State {
		one := &of.State[i]
		shape := strings.Trim(strings.Join(strings.Fields(fmt.Sprint([]int64(one.shape))), ","), "[]")
		fmt.Fprintf(&text, `,%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}`,
			quoted(one.Name), safetensorsNames[one.Dtype.name], shape, begin, begin+one.bytes)
		begin += one.bytes
	}
	text.WriteByte('}')
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	header := binary.LittleEndian.AppendUint64(nil, uint64(text.Len()))
	return append(header, text.String()...)
}

// quoted returns a text as JSON, with no more escapes than it must have.
func quoted(text string) string {
	var into bytes.Buffer
	encoder := json.NewEncoder(&into)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(into.String(), "\n")
}
