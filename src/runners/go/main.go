// ONNX Runtime from Go, under the runner contract (docs/runner-contract.md).
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

const runnerName = "go"

func main() {
	// Timed calls stay on one thread.
	runtime.LockOSThread()
	os.Exit(program(os.Args[1:]))
}

// program does what the arguments say, writes the record and returns the exit code.
func program(words []string) int {
	record := fields{"runner": runnerName}
	err := work(words, record)
	code := 0
	if err != nil {
		code = report(asFailure(err), record)
	}
	// Of cases the record is what came of each.
	if file := recordFile(words); file != "" && record["mode"] != "cases" {
		if err := writeRecord(file, record); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", runnerName, err)
			return failed
		}
	}
	return code
}

// work fills the record.
func work(words []string, record fields) (err error) {
	defer func() {
		if said := recover(); said != nil {
			err = crash(fmt.Errorf("panic: %v", said))
		}
	}()
	if !isLittleEndian {
		return crash(errors.New("tensors are little-endian, this machine is not"))
	}
	args, err := parseArguments(words)
	if err != nil {
		return err
	}
	record["mode"], record["provider_requested"] = args.mode, args.provider
	opts, err := readOptions(args.options)
	if err != nil {
		return err
	}
	if args.provider == "cuda" && cudaDevices() == 0 {
		return skip("no CUDA device")
	}
	var found fields
	switch args.mode {
	case "latency":
		found, err = runLatency(args, opts)
	case "load":
		found, err = runLoad(args, opts)
	case "train":
		err = runTrain(args, opts, record)
	default:
		return runCases(args, opts)
	}
	if err != nil {
		return err
	}
	set, notSet := opts.told(args.provider)
	maps.Copy(record, found)
	maps.Copy(record, fields{
		"status": "ok", "provider_used": args.provider, "session_options": set,
		"options_not_set": notSet, "input_residency": "host",
		"runtime_version": ort.GetVersion(), "cpus_allowed": status("Cpus_allowed_list"),
		"language_version": strings.Replace(runtime.Version(), "go", "Go ", 1),
		"library_file":     libraryFile(),
	})
	return nil
}

// report says what failed, notes it in the record, and returns the exit code.
func report(failure *failure, record fields) int {
	line := strings.Join(strings.Fields(failure.message), " ")
	if failure.code == wasSkipped {
		fmt.Fprintf(os.Stderr, "%s: skipped: %s\n", runnerName, line)
		record["status"], record["reason"] = "skipped", failure.message
		return failure.code
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", runnerName, line)
	record["status"], record["cause"] = "failed", failure.cause
	record["message"] = failure.message
	return failure.code
}

// writeRecord writes under a temporary name in the same folder, and renames; it leaves nothing where
// that fails.
func writeRecord(file string, record fields) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	folder, name := filepath.Split(file)
	if err := os.MkdirAll(filepath.Clean(folder+"."), 0o777); err != nil {
		return err
	}
	temporary := filepath.Join(folder, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	if err = os.WriteFile(temporary, append(text, '\n'), 0o666); err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}
