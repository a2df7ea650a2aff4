package main

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

var argumentNames = []string{
	"mode", "model", "inputs", "outputs", "provider", "options", "library", "record", "warmup",
	"min-runs", "max-seconds", "profile", "sessions", "arrivals", "cases", "skip",
	"step", "batch", "order", "until", "state", "checkpoint", "checkpoint-every", "schedule",
	"accumulate", "seed",
}

// What each mode cannot do without.
var neededBy = map[string][]string{
	"latency": {"model", "inputs", "outputs"},
	"load":    {"model", "inputs", "outputs", "arrivals"},
	"cases":   {"cases"},
	"train":   {"step", "inputs", "batch", "order", "until", "checkpoint"},
}

// arguments are those of the contract; times in seconds.
type arguments struct {
	mode, provider, library, record  string
	model, inputs, outputs, profile  string
	options, arrivals, cases         string
	warmup, minRuns, sessions, first int
	maxSeconds                       float64
	// Of mode train: a portable training step, and how it is gone on with.
	step, order, state, checkpoint, schedule string
	batch, until, every, accumulate          int
	seed                                     int64
}

// parseArguments reads `--name value` pairs; its error names the first that cannot be used.
func parseArguments(words []string) (*arguments, error) {
	given, err := pairs(words)
	if err != nil {
		return nil, err
	}
	parsed := &arguments{
		mode: "latency", provider: "cpu",
		library: given["library"], record: given["record"],
		model: given["model"], inputs: given["inputs"], outputs: given["outputs"],
		profile: given["profile"], options: given["options"],
		arrivals: given["arrivals"], cases: given["cases"],
		step: given["step"], order: given["order"], state: given["state"],
		checkpoint: given["checkpoint"], schedule: given["schedule"],
	}
	if mode, ok := given["mode"]; ok {
		parsed.mode = mode
	}
	if provider, ok := given["provider"]; ok {
		parsed.provider = provider
	}
	needed, known := neededBy[parsed.mode]
	if !known {
		return nil, bad("--mode %s: expected latency, load, cases or train", parsed.mode)
	}
	if parsed.provider != "cpu" && parsed.provider != "cuda" {
		return nil, bad("--provider %s: expected cpu or cuda", parsed.provider)
	}
	for _, name := range append([]string{"record", "library"}, needed...) {
		if given[name] == "" {
			return nil, bad("argument --%s is missing", name)
		}
	}
	if err := parsed.readNumbers(given); err != nil {
		return nil, err
	}
	if !isFile(parsed.library) {
		return nil, bad("--library %s: no such file", parsed.library)
	}
	if parsed.takesModel() && !isFile(parsed.model) {
		return nil, bad("%s: no such model file", parsed.model)
	}
	return parsed, nil
}

func (a *arguments) takesModel() bool { return a.mode == "latency" || a.mode == "load" }

func pairs(words []string) (map[string]string, error) {
	given := map[string]string{}
	for at := 0; at < len(words); at += 2 {
		name, dashed := strings.CutPrefix(words[at], "--")
		if !dashed || !slices.Contains(argumentNames, name) {
			return nil, bad("argument '%s': expected one of --%s",
				words[at], strings.Join(argumentNames, ", --"))
		}
		if at+1 == len(words) {
			return nil, bad("argument --%s: expected a value after it", name)
		}
		if _, twice := given[name]; twice {
			return nil, bad("argument --%s is given twice, expected once", name)
		}
		given[name] = words[at+1]
	}
	return given, nil
}

func (a *arguments) readNumbers(given map[string]string) error {
	wholes := []struct {
		name         string
		least, usual int64
		into         *int
	}{
		{"warmup", 0, 20, &a.warmup},
		{"min-runs", 1, 100, &a.minRuns},
		{"sessions", 1, 1, &a.sessions},
		{"skip", 0, 0, &a.first},
		{"batch", 1, 0, &a.batch},
		{"until", 0, 0, &a.until},
		{"checkpoint-every", 0, 0, &a.every},
		{"accumulate", 1, 1, &a.accumulate},
	}
	for _, whole := range wholes {
		number, err := wholeArgument(given, whole.name, whole.least, whole.usual, 31)
		if err != nil {
			return err
		}
		*whole.into = int(number)
	}
	var err error
	if a.seed, err = wholeArgument(given, "seed", 0, 0, 63); err != nil {
		return err
	}
	a.maxSeconds = 1.0
	if text, ok := given["max-seconds"]; ok {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) || number < 0 {
			return bad("--max-seconds %s: expected seconds >= 0", text)
		}
		a.maxSeconds = number
	}
	return nil
}

func wholeArgument(
	given map[string]string, name string, least, usual int64, bits int,
) (int64, error) {
	text, ok := given[name]
	if !ok {
		return usual, nil
	}
	number, err := strconv.ParseUint(text, 10, bits)
	if err != nil || int64(number) < least {
		return 0, bad("--%s %s: expected a whole number >= %d", name, text, least)
	}
	return int64(number), nil
}

// recordFile finds the record's file, however wrong the other arguments are.
func recordFile(words []string) string {
	at := slices.Index(words, "--record")
	if at < 0 || at+1 == len(words) {
		return ""
	}
	return words[at+1]
}

func isFile(path string) bool {
	facts, err := os.Stat(path)
	return err == nil && facts.Mode().IsRegular()
}
