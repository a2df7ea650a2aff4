package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// peakMemory returns the memory that the process held at most, in bytes; nil where Linux does not
// tell.
func peakMemory() any {
	text, _, _ := strings.Cut(status("VmHWM"), " kB")
	kilobytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return kilobytes * 1024
}

// status returns a value of /proc/self/status, "" when it has none.
func status(name string) string {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// libraryFile returns the mapped file that holds ONNX Runtime.
func libraryFile() string {
	text, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(text)) {
		at := strings.IndexByte(line, '/')
		if at >= 0 && strings.Contains(line[at:], "libonnxruntime.so") {
			return strings.TrimSpace(line[at:])
		}
	}
	return ""
}

// monotonicNs reads CLOCK_MONOTONIC, whose absolute value the package time does not show.
func monotonicNs() int64 {
	const clockMonotonic = 1
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

// profiles returns the profiles with a prefix that are there.
func profiles(prefix string) []string {
	folder, start := filepath.Split(prefix)
	entries, _ := os.ReadDir(filepath.Clean(folder + "."))
	var found []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), start+"_") && strings.HasSuffix(entry.Name(), ".json") {
			found = append(found, folder+entry.Name())
		}
	}
	slices.Sort(found)
	return found
}
