package number

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"transect-trainer-go/fault"
)

func TestMemoryThatIsNotThereIsAFaultWithItsCause(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		var known *fault.Fault
		if !errors.As(err, &known) || known.Cause != fault.OutOfMemory {
			t.Errorf("it said %v", err)
		}
	}()
	Make[float64](1 << 50)
}

func TestABufferGrowsAndIsUsedAgain(t *testing.T) {
	var some Buffer[float32]
	for _, n := range []int{3, 1 << 20, 5, 1 << 21} {
		numbers := some.Of(n)
		if len(numbers) != n {
			t.Fatalf("%d numbers, asked for %d", len(numbers), n)
		}
		numbers[0], numbers[n-1] = 1, 2
	}
}

func TestATeamDoesEveryPartOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 7} {
		team := NewTeam(threads)
		for _, parts := range []int{1, 2, 100} {
			counts := make([]atomic.Int32, parts)
			team.Run(parts, 1<<20, func(part int) { counts[part].Add(1) })
			for part := range counts {
				if counts[part].Load() != 1 {
					t.Errorf("%d threads, %d parts: part %d was done %d times", threads, parts, part, counts[part].Load())
				}
			}
		}
	}
}

func TestAPanicOfATeamIsTheCallers(t *testing.T) {
	defer func() {
		if recover() != "lost" {
			t.Error("it was not told")
		}
	}()
	NewTeam(3).Run(8, 1<<20, func(part int) {
		if part == 5 {
			panic("lost")
		}
	})
}

func TestTheFirstNaNIsTheLargest(t *testing.T) {
	nan := math.NaN()
	for _, one := range []struct {
		x     []float64
		place int
	}{{[]float64{1, 3, 3, 2}, 1}, {[]float64{-1}, 0}, {[]float64{5, nan, 9}, 1}} {
		if got := Largest(one.x); got != one.place {
			t.Errorf("of %v it is %d, expected %d", one.x, got, one.place)
		}
	}
}
