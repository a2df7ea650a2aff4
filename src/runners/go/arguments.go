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
}

// What each mode cannot do without.
var neededBy = map[string][]string{
	"latency": {"model", "inputs", "outputs"},
	"load":    {"model", "inputs", "outputs", "arrivals"},
	"cases":   {"cases"},
}

// arguments are those of the contract; times in seconds.
type arguments struct {
	mode, provider, library, record  string
	model, inputs, outputs, profile  string
	options, arrivals, cases         string
	warmup, minRuns, sessions, first int
	maxSeconds                       float64
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
	}
	if mode, ok := given["mode"]; ok {
		parsed.mode = mode
	}
	if provider, ok := given["provider"]; ok {
		parsed.provider = provider
	}
	needed, known := neededBy[parsed.mode]
	if !known {
		return nil, bad("--mode %s: expected latency, load or cases", parsed.mode)
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
	if parsed.mode != "cases" && !isFile(parsed.model) {
		return nil, bad("%s: no such model file", parsed.model)
	}
	return parsed, nil
}

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
		least, usual int
		into         *int
	}{
		{"warmup", 0, 20, &a.warmup},
		{"min-runs", 1, 100, &a.minRuns},
		{"sessions", 1, 1, &a.sessions},
		{"skip", 0, 0, &a.first},
	}
	for _, whole := range wholes {
		*whole.into = whole.usual
		text, ok := given[whole.name]
		if !ok {
			continue
		}
		number, err := strconv.ParseUint(text, 10, 31)
		if err != nil || int(number) < whole.least {
			return bad("--%s %s: expected a whole number >= %d", whole.name, text, whole.least)
		}
		*whole.into = int(number)
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
