// The turns of bench_go_mpi.py in Go: on the same buffers by turns with the C of go_mpi_turns.c, which is in
// this process too, or alone (`alone` as the first argument). Prints what that program prints.
package main

/*
int nothing(float *data, int n);
double allreduce_turn(float *data, int n, int repeats);
double through_root_turn(float *data, float *incoming, int n, int repeats);
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"transect-trainer-go/mpi"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func allreduce(comm mpi.Comm, data, _ []float32, repeats int) float64 {
	begin := time.Now()
	for range repeats {
		must(mpi.Allreduce(comm, data))
	}
	return time.Since(begin).Seconds() / float64(repeats)
}

func throughRoot(comm mpi.Comm, data, incoming []float32, repeats int) float64 {
	begin := time.Now()
	for range repeats {
		if comm.Rank == 0 {
			for from := 1; from < comm.Size; from++ {
				_, err := mpi.Recv(comm, incoming, from, 0)
				must(err)
				must(mpi.Add(data, incoming))
			}
			for to := 1; to < comm.Size; to++ {
				must(mpi.Send(comm, data, to, 0))
			}
		} else {
			must(mpi.Send(comm, data, 0, 0))
			_, err := mpi.Recv(comm, data, 0, 0)
			must(err)
		}
	}
	return time.Since(begin).Seconds() / float64(repeats)
}

func first(data []float32) *C.float { return (*C.float)(unsafe.Pointer(&data[0])) }

func cAllreduce(_ mpi.Comm, data, _ []float32, repeats int) float64 {
	return float64(C.allreduce_turn(first(data), C.int(len(data)), C.int(repeats)))
}

func cThroughRoot(_ mpi.Comm, data, incoming []float32, repeats int) float64 {
	return float64(C.through_root_turn(first(data), first(incoming), C.int(len(data)), C.int(repeats)))
}

// slowest returns the largest of the ranks' seconds.
func slowest(comm mpi.Comm, seconds float64) float64 {
	all := make([]float64, comm.Size)
	all[comm.Rank] = seconds
	must(mpi.Allreduce(comm, all))
	most := 0.0
	for _, one := range all {
		most = max(most, one)
	}
	return most
}

type contender struct {
	name string
	turn func(mpi.Comm, []float32, []float32, int) float64
}

func main() {
	comm, err := mpi.Init()
	must(err)
	alone := os.Args[1] == "alone"
	turns, err := strconv.Atoi(os.Args[2])
	must(err)
	wanted, err := strconv.ParseFloat(os.Args[3], 64)
	must(err)
	for _, word := range os.Args[4:] {
		bytes, err := strconv.Atoi(word)
		must(err)
		data, incoming := make([]float32, bytes/4), make([]float32, bytes/4)
		for _, kind := range []string{"allreduce", "through-root"} {
			both := []contender{{"Go", allreduce}, {"C", cAllreduce}}
			if kind == "through-root" {
				both = []contender{{"Go", throughRoot}, {"C", cThroughRoot}}
			}
			if alone {
				both = both[:1]
			}
			run(comm, kind, both, data, incoming, turns, wanted)
		}
	}
	const calls = 1000000
	data := make([]float32, 1)
	begin := time.Now()
	for range calls {
		if C.nothing(first(data), 1) != 1 {
			must(fmt.Errorf("a call that does nothing returned otherwise"))
		}
	}
	if seconds := time.Since(begin).Seconds() / calls; comm.Rank == 0 {
		fmt.Printf("{\"program\": \"Go\", \"kind\": \"empty call\", \"bytes\": 0, \"seconds\": %.9g}\n", seconds)
	}
	must(mpi.Finalize())
}

func run(
	comm mpi.Comm, kind string, both []contender, data, incoming []float32, turns int, wanted float64,
) {
	// All must sum right before any is timed.
	for _, one := range both {
		for k := range data {
			data[k] = float32(comm.Rank + 1)
		}
		one.turn(comm, data, incoming, 1)
		for _, value := range data {
			if value != float32(comm.Size*(comm.Size+1)/2) {
				must(fmt.Errorf("%s, %s: the sum of %d numbers is %g", one.name, kind, len(data), value))
			}
		}
	}
	repeats := 1
	// The first turns open connections, and tell how many fit.
	for turn := -2; turn < turns; turn++ {
		for number := range both {
			// Nobody always goes first.
			one := both[(number+turn+len(both))%len(both)]
			clear(data)
			must(comm.Barrier())
			seconds := slowest(comm, one.turn(comm, data, incoming, repeats))
			if turn < 0 {
				repeats = max(1, min(10000, int(wanted/seconds)))
			} else if comm.Rank == 0 {
				fmt.Printf("{\"program\": %q, \"kind\": %q, \"bytes\": %d, \"seconds\": %.9g}\n",
					one.name, kind, len(data)*4, seconds)
			}
		}
	}
}
