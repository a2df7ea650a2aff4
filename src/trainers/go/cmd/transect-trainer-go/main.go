// transect-trainer-go is one rank of a training cell, by docs/trainer-contract.md: `transect-trainer-go PLAN.json`.
package main

import (
	"os"

	"transect-trainer-go/blas"
	"transect-trainer-go/loop"
	"transect-trainer-go/nets"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func main() {
	os.Exit(loop.Main(loop.Program{Float32: build[float32], Float64: build[float64], Libraries: blas.Libraries}))
}

func build[T trainer.Number](p *plan.Plan) (trainer.Trainer[T], error) {
	blas.SetThreads(p.Cell.Threads)
	return nets.New[T](p)
}
