package main

import (
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// options are those that are set, by the contract's names.
type options struct {
	file  string
	given map[string]any
}

var (
	modes = map[string]ort.ExecutionMode{
		"sequential": ort.ExecutionModeSequential,
		"parallel":   ort.ExecutionModeParallel,
	}
	levels = map[string]ort.GraphOptimizationLevel{
		"disabled": ort.GraphOptimizationLevelDisableAll,
		"basic":    ort.GraphOptimizationLevelEnableBasic,
		"extended": ort.GraphOptimizationLevelEnableExtended,
		"all":      ort.GraphOptimizationLevelEnableAll,
	}
)

// readOptions reads the file; its error names the first key or value that cannot be used.
func readOptions(file string) (*options, error) {
	read := &options{file: file, given: map[string]any{}}
	if file == "" {
		return read, nil
	}
	if err := readJSON(file, &read.given, "a JSON object"); err != nil {
		return nil, err
	}
	if read.given == nil {
		return nil, bad("%s: expected a JSON object, got null", file)
	}
	for _, key := range read.keys() {
		if read.given[key] == nil {
			delete(read.given, key)
		} else if wanted := wantedOf(key, read.given[key]); wanted != "" {
			told, _ := json.Marshal(read.given[key])
			return nil, bad("%s: option '%s' is %s, expected %s", file, key, told, wanted)
		}
	}
	return read, nil
}

// told returns what was set, and the names of what was not, for the record: the provider cpu has no
// options of its own.
func (o *options) told(provider string) (map[string]any, []string) {
	set, notSet := maps.Clone(o.given), []string{}
	if provider == "cpu" {
		if texts, _ := textsOf(set["provider_options"]); len(texts) > 0 {
			notSet = append(notSet, "provider_options")
		}
		delete(set, "provider_options")
	}
	return set, notSet
}

func (o *options) keys() []string {
	keys := make([]string, 0, len(o.given))
	for key := range o.given {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// wantedOf returns what an option should be, when it is not.
func wantedOf(key string, value any) string {
	text, isText := value.(string)
	good, wanted := false, ""
	switch key {
	case "intra_op_num_threads", "inter_op_num_threads":
		_, good = wholeOf(value)
		wanted = "a whole number >= 0"
	case "execution_mode":
		_, good = modes[text]
		wanted = "sequential or parallel"
	case "graph_optimization_level":
		_, good = levels[text]
		wanted = "disabled, basic, extended or all"
	case "enable_cpu_mem_arena", "enable_mem_pattern":
		_, good = value.(bool)
		wanted = "true or false"
	case "provider_options":
		_, good = textsOf(value)
		wanted = "an object of texts"
	default:
		// C ends a text at its first zero.
		good = isText && strings.Contains(key, ".") && !strings.Contains(key+text, "\x00")
		wanted = "a text"
		if !strings.Contains(key, ".") {
			wanted = "intra_op_num_threads, inter_op_num_threads, execution_mode, " +
				"graph_optimization_level, enable_cpu_mem_arena, enable_mem_pattern, " +
				"provider_options, or a name with a dot"
		}
	}
	if good {
		return ""
	}
	return wanted
}

func wholeOf(value any) (int, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	whole, err := strconv.ParseUint(number.String(), 10, 31)
	return int(whole), err == nil
}

func textsOf(value any) (map[string]string, bool) {
	object, ok := value.(map[string]any)
	texts := map[string]string{}
	for key, one := range object {
		text, isText := one.(string)
		ok = ok && isText && !strings.Contains(key+text, "\x00")
		texts[key] = text
	}
	return texts, ok
}

// session makes ONNX Runtime's options. With a profile its profiler is on, and its log tells
// what options it has.
func (o *options) session(provider, profile string) (*ort.SessionOptions, error) {
	made, err := ort.NewSessionOptions()
	if err != nil {
		return nil, crash(err)
	}
	for _, key := range o.keys() {
		if err := set(made, key, o.given[key]); err != nil {
			return nil, bad("%s: option '%s': %v", o.file, key, err)
		}
	}
	if provider == "cuda" {
		if err := o.appendCUDA(made); err != nil {
			return nil, err
		}
	}
	severity := ort.LoggingLevel(ort.LoggingLevelError)
	if profile != "" {
		severity = ort.LoggingLevelInfo
		err = made.EnableProfiling(profile)
	}
	if err == nil {
		err = made.SetLogSeverityLevel(severity)
	}
	if err != nil {
		return nil, crash(err)
	}
	return made, nil
}

// set sets one option, whose value wantedOf found good.
func set(made *ort.SessionOptions, key string, value any) error {
	text, _ := value.(string)
	flag, _ := value.(bool)
	whole, _ := wholeOf(value)
	switch key {
	case "intra_op_num_threads":
		return made.SetIntraOpNumThreads(whole)
	case "inter_op_num_threads":
		return made.SetInterOpNumThreads(whole)
	case "execution_mode":
		return made.SetExecutionMode(modes[text])
	case "graph_optimization_level":
		return made.SetGraphOptimizationLevel(levels[text])
	case "enable_cpu_mem_arena":
		return made.SetCpuMemArena(flag)
	case "enable_mem_pattern":
		return made.SetMemPattern(flag)
	case "provider_options":
		// Of the provider, which takes them itself.
		return nil
	}
	return made.AddSessionConfigEntry(key, text)
}

// appendCUDA adds the provider. The first call that needs its library loads it, which is setting
// options if there are any: what is then wrong is an option, or the library.
func (o *options) appendCUDA(made *ort.SessionOptions) error {
	const absent = "the CUDA provider did not load: %v"
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return skip(absent, err)
	}
	defer cuda.Destroy()
	texts, _ := textsOf(o.given["provider_options"])
	err = cuda.Update(texts)
	if err != nil && !strings.Contains(err.Error(), "Failed to load") {
		return bad("%s: option 'provider_options': %v", o.file, err)
	}
	if err == nil {
		err = made.AppendExecutionProviderCUDA(cuda)
	}
	if err != nil {
		return skip(absent, err)
	}
	return nil
}

// runIncludes names the parts of an iteration that happen inside of Run.
func runIncludes(provider string, copies bool) []string {
	includes := []string{}
	if provider == "cuda" {
		includes = append(includes, "bind")
	}
	if copies {
		includes = append(includes, "copy")
	}
	return slices.Clip(includes)
}
