// The docking kernel in Go: goroutines on as many threads, and the contract of docs/docking.md.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type options struct {
	deck, energies, schedule                     string
	threads, perItem, iterations, warmUps, chunk int
	cpus                                         []int
}

func read() (options, error) {
	var given options
	var cpus string
	flags := flag.NewFlagSet("transect-docking-go", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&given.deck, "deck", "", "a prepared deck")
	flags.StringVar(&given.energies, "energies", "", "where the energies go")
	flags.StringVar(&given.schedule, "schedule", "static", "static or dynamic")
	flags.StringVar(&cpus, "cpus", "", "one CPU for each thread")
	flags.IntVar(&given.threads, "threads", 1, "threads")
	flags.IntVar(&given.perItem, "ppwi", 64, "poses of one work-item")
	flags.IntVar(&given.iterations, "iterations", 8, "timed runs")
	flags.IntVar(&given.warmUps, "warm-ups", 2, "runs before them")
	flags.IntVar(&given.chunk, "chunk", 0, "work-items that are dealt out together")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return given, err
	}
	if given.deck == "" || given.energies == "" || flags.NArg() > 0 {
		return given, fmt.Errorf("expected --deck FILE and --energies FILE, found %q", os.Args[1:])
	}
	if min(given.threads, given.perItem) < 1 || min(given.chunk, given.warmUps, given.iterations) < 0 {
		return given, fmt.Errorf("expected whole numbers from 1 on, found %q", os.Args[1:])
	}
	if given.schedule != "static" && given.schedule != "dynamic" {
		return given, fmt.Errorf("--schedule: expected static or dynamic, found '%s'", given.schedule)
	}
	for _, text := range strings.Split(cpus, ",") {
		if text == "" {
			continue
		}
		cpu, err := strconv.Atoi(text)
		if err != nil || cpu < 0 {
			return given, fmt.Errorf("--cpus: expected numbers of CPUs, found '%s'", cpus)
		}
		given.cpus = append(given.cpus, cpu)
	}
	if len(given.cpus) > 0 && len(given.cpus) != given.threads {
		return given, fmt.Errorf("--cpus: expected %d of them, one for each thread", given.threads)
	}
	return given, nil
}

// worker waits for runs and takes part in them; it has a thread of its own, which may be pinned.
type worker struct {
	number int
	begin  chan []float32
}

type team struct {
	deck    *deck
	given   options
	chunk   int
	items   int
	workers []*worker
	next    atomic.Int64
	done    sync.WaitGroup
}

func newTeam(d *deck, given options) (*team, error) {
	t := &team{deck: d, given: given, items: (d.count + given.perItem - 1) / given.perItem}
	t.chunk = given.chunk
	if t.chunk == 0 {
		t.chunk = 1
		if given.schedule == "static" {
			// One piece for each thread, as OpenMP does.
			t.chunk = (t.items + given.threads - 1) / given.threads
		}
	}
	ready := make(chan error, given.threads)
	for number := range given.threads {
		one := &worker{number: number, begin: make(chan []float32)}
		t.workers = append(t.workers, one)
		go func() {
			runtime.LockOSThread()
			var err error
			if len(given.cpus) > 0 {
				err = pin(given.cpus[number])
			}
			ready <- err
			mine := newItem(given.perItem)
			for energies := range one.begin {
				t.work(one.number, mine, energies)
				t.done.Done()
			}
		}()
	}
	for range given.threads {
		if err := <-ready; err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *team) work(thread int, mine *item, energies []float32) {
	dynamic := t.given.schedule == "dynamic"
	for piece := thread; ; piece += t.given.threads {
		if dynamic {
			piece = int(t.next.Add(1)) - 1
		}
		if piece*t.chunk >= t.items {
			return
		}
		for i := piece * t.chunk; i < min((piece+1)*t.chunk, t.items); i++ {
			first := i * t.given.perItem
			mine.run(t.deck, first, energies[first:min(first+t.given.perItem, t.deck.count)])
		}
	}
}

func (t *team) run(energies []float32) {
	t.next.Store(0)
	t.done.Add(len(t.workers))
	for _, one := range t.workers {
		one.begin <- energies
	}
	t.done.Wait()
}

// nextRuns returns how many runs come next. By turns, where no number was given: whoever gives them
// says it, 0 at the end.
func nextRuns(iterations, done int) (count int) {
	if iterations == 0 {
		fmt.Println("turn")
		fmt.Scanln(&count)
	} else if done == 0 {
		count = iterations
	}
	return count
}

func measure() error {
	given, err := read()
	if err != nil {
		return err
	}
	d, err := readDeck(given.deck)
	if err != nil {
		return err
	}
	// One more for the goroutine that waits.
	runtime.GOMAXPROCS(given.threads + 1)
	t, err := newTeam(d, given)
	if err != nil {
		return err
	}
	fmt.Println("fact kernel Go, goroutines")
	fmt.Println("fact compiled_by", runtime.Version())
	where := "not pinned"
	if len(given.cpus) > 0 {
		where = strings.Trim(fmt.Sprint(given.cpus), "[]")
	}
	fmt.Println("fact cpus_of_threads", where)
	energies := make([]float32, d.count)
	timedRun := func() float64 {
		for pose := range energies {
			// What a run leaves out must not be what the run before it left.
			energies[pose] = float32(math.NaN())
		}
		start := time.Now()
		t.run(energies)
		return time.Since(start).Seconds()
	}
	for i := range given.warmUps {
		fmt.Printf("warm-up %d %.9f\n", i, timedRun())
	}
	done := 0
	for left := nextRuns(given.iterations, done); left > 0; left = nextRuns(given.iterations, done) {
		for ; left > 0; left-- {
			fmt.Printf("time %d %.9f\n", done, timedRun())
			done++
		}
	}
	file, err := os.Create(given.energies)
	if err != nil {
		return err
	}
	if err := binary.Write(file, binary.LittleEndian, energies); err != nil {
		return err
	}
	return file.Close()
}

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}
