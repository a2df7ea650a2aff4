// The trainer in Go with ranks that end badly: rank 1 does in its fourth step what the cell's framework is called.
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"transect-trainer-go/blas"
	"transect-trainer-go/loop"
	"transect-trainer-go/mpi"
	"transect-trainer-go/nets"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

func main() {
	os.Exit(loop.Main(loop.Program{Float32: build, Libraries: blas.Libraries}))
}

func build(p *plan.Plan) (trainer.Trainer[float32], error) {
	right, err := nets.New[float32](p)
	return &faulty{Trainer: right, kind: p.Cell.Framework}, err
}

type faulty struct {
	trainer.Trainer[float32]
	kind string
	step int
}

var kept [][]byte

func (f *faulty) ForwardBackward(batch trainer.Batch[float32]) (float64, error) {
	f.step++
	if f.step == 4 && os.Getenv("OMPI_COMM_WORLD_RANK") == "1" {
		f.fail()
	}
	return f.Trainer.ForwardBackward(batch)
}

func (f *faulty) fail() {
	switch f.kind {
	case "go-panics":
		_ = batchNumbers[f.step]
	case "go-panics-beside":
		go func() { panic("a goroutine of its own went wrong") }()
		time.Sleep(time.Hour)
	case "go-killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "go-hangs":
		world, err := mpi.World()
		if err != nil {
			panic(err)
		}
		fmt.Println("waits for what nobody ever sends")
		_, _ = mpi.Recv(world, make([]float32, 1), 0, 99)
	case "go-out-of-addresses":
		// The runtime has reserved much more than it holds: a limit on what may be mapped besides.
		limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
			panic(err)
		}
		kept = append(kept, make([]byte, 1<<30))
	case "go-fills":
		for {
			kept = append(kept, make([]byte, 1<<24))
			last := kept[len(kept)-1]
			for i := 0; i < len(last); i += 4096 {
				last[i] = 1
			}
		}
	}
}

var batchNumbers = []int{1, 2, 3}
