package loop

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/results"
	"transect-trainer-go/strategies"
	"transect-trainer-go/trainer"
)

// Main is one rank, from its arguments to its exit code: `PROGRAM PLAN.json`.
func Main(program Program) int {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s PLAN.json\n", os.Args[0])
		return 2
	}
	p, err := plan.Read(os.Args[1])
	who := 0
	// Of a rank that has not joined yet, what its launcher says.
	for _, name := range []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if told, wrong := strconv.Atoi(os.Getenv(name)); wrong == nil {
			who = told
			break
		}
	}
	var aborter strategies.Aborter
	var leave func() error
	if err == nil {
		leave, err = guarded(p, program, &who, func(one strategies.Aborter) { aborter = one })
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", who, err)
		if p != nil {
			if unwritten := results.Fault(p.Out, who, err); unwritten != nil {
				fmt.Fprintf(os.Stderr, "rank %d: its fault could not be written: %v\n", who, unwritten)
			}
		}
		// Others may wait for this rank inside a collective.
		if aborter != nil {
			aborter.Abort()
		}
		return 1
	}
	// The work is done and written: a fault here is told but costs no result.
	if err := leave(); err != nil {
		fmt.Fprintf(os.Stderr, "the rank's work is done and written; parting from the others failed: %v\n", err)
	}
	return 0
}

// guarded runs the rank and turns a panic into an error.
func guarded(
	p *plan.Plan, program Program, who *int, joined func(strategies.Aborter),
) (leave func() error, err error) {
	defer func() {
		if value := recover(); value != nil {
			stack := debug.Stack()
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", value, stack)
			err = fault.Recovered(value, stack)
		}
	}()
	runtime.GOMAXPROCS(p.Cell.Threads)
	device := program.Device
	if device == "" {
		device = "cpu"
	}
	switch {
	case p.Cell.Device != device:
		return nil, fault.Bad("this program computes on %s, not on %s", device, p.Cell.Device)
	case p.Cell.Precision == "fp32" && program.Float32 != nil:
		return parting(run[float32](p, program, program.Float32, who, joined))
	case p.Cell.Precision == "fp64" && program.Float64 != nil:
		return parting(run[float64](p, program, program.Float64, who, joined))
	}
	return nil, fault.Bad("this program does not train in %s", p.Cell.Precision)
}

func parting[T trainer.Number](strategy strategies.Strategy[T], err error) (func() error, error) {
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := strategy.Barrier(); err != nil {
			return err
		}
		return strategy.Leave()
	}, nil
}
