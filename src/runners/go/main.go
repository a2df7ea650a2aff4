// ONNX Runtime from Go, under the runner contract (docs/runner-contract.md).
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

const runnerName = "go"

func main() {
	// Timed calls stay on one thread.
	runtime.LockOSThread()
	var out *result
	fault := caught(func() {
		if len(os.Args) != 2 {
			panic(bad("usage: transect-runner-go PLAN"))
		}
		plan := readPlan(os.Args[1])
		out = newResult(plan.text(roleOut))
		out.say(work(plan, out))
	})
	if fault == nil {
		return
	}
	told := fault.told()
	if out != nil {
		// Where this fails too, standard error has it.
		_ = out.lines.Encode(told)
	}
	os.Exit(fault.code)
}

// levels in the order of the contract's numbers, which begin with 1.
var levels = []func(*plan, *result) fields{latency, load, cases, train}

// work returns the facts of the result's last line.
func work(plan *plan, out *result) fields {
	library := plan.text(roleLibrary)
	ort.SetSharedLibraryPath(library)
	if err := ort.InitializeEnvironment(); err != nil {
		panic(&failure{failed, "missing-dependency", fmt.Sprintf("%s: %v", library, err), false})
	}
	facts := levels[plan.Level-1](plan, out)
	facts["status"], facts["provider_used"] = "ok", plan.text(roleProvider)
	facts["options_not_set"] = []string{}
	if !plan.onCUDA() && len(plan.of(roleProviderOption)) > 0 {
		// The provider cpu has none of its own.
		facts["options_not_set"] = []string{"provider_options"}
	}
	facts["runtime_version"] = ort.GetVersion()
	facts["language_version"] = strings.Replace(runtime.Version(), "go", "Go ", 1)
	return facts
}
