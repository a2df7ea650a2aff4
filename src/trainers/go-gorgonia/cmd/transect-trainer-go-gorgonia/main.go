// transect-trainer-go-gorgonia is one rank of a training cell whose gradients Gorgonia computes, by
// docs/trainer-contract.md: `transect-trainer-go-gorgonia PLAN.json`.
package main

import (
	"os"
	"runtime/debug"

	"transect-trainer-go-gorgonia/graph"
	"transect-trainer-go/loop"
)

func main() {
	// The tape makes new tensors in every step, which hold no pointers: to look for garbage early costs
	// little, and to wait until there is as much of it as of what is used would cost twice the memory.
	debug.SetGCPercent(20)
	os.Exit(loop.Main(loop.Program{
		Float32: graph.New[float32], Float64: graph.New[float64], Libraries: libraries, Device: graph.Device,
	}))
}

// libraries are the versions of what computes.
func libraries() map[string]string {
	versions := map[string]string{}
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		switch module.Path {
		case "gorgonia.org/gorgonia", "gorgonia.org/tensor":
			versions[module.Path] = module.Version
		case "gonum.org/v1/gonum":
			versions["blas"] = "gonum " + module.Version
		}
	}
	return versions
}
