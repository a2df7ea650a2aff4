// Package number has what all others need of numbers: memory for them, conversions, and teams of goroutines.
package number

import (
	"math"
	"syscall"
	"unsafe"

	"transect-trainer-go/fault"
	"transect-trainer-go/trainer"
)

// From so many bytes on memory comes from the kernel itself: it can say that there is none, where
// Go's own allocator ends the process without a word that a record could hold.
const mapped = 1 << 16

// Size returns the bytes of one number.
func Size[T trainer.Number]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Make returns n zeros. Where there is no memory it panics with a fault that says so.
func Make[T trainer.Number](n int) []T {
	bytes := n * Size[T]()
	if bytes < mapped {
		return make([]T, n)
	}
	memory, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(fault.New(fault.OutOfMemory, "no memory for %d bytes: %v", bytes, err))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// Free gives back what Make gave; nobody may use it any more.
func Free[T trainer.Number](numbers []T) {
	bytes := cap(numbers) * Size[T]()
	if bytes < mapped {
		return
	}
	memory := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), bytes)
	// A slice that did not come from Make is refused by the kernel's own bookkeeping in syscall.
	_ = syscall.Munmap(memory)
}

// Buffer is memory that grows as it is asked for and is used again.
type Buffer[T trainer.Number] struct{ all []T }

// Of returns n numbers of whatever content.
func (b *Buffer[T]) Of(n int) []T {
	if n > cap(b.all) {
		Free(b.all)
		b.all = Make[T](n)
	}
	return b.all[:n]
}

// Round writes numbers of one precision as those of another.
func Round[T, F trainer.Number](into []T, from []F) {
	into = into[:len(from)]
	for i, value := range from {
		into[i] = T(value)
	}
}

// Wide returns a copy in float64.
func Wide[T trainer.Number](from []T) []float64 {
	wide := make([]float64, len(from))
	Round(wide, from)
	return wide
}

// Floats32 and Floats64 are views of numbers whose type is known to be that; they cost nothing.
func Floats32[T trainer.Number](x []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Floats64 is the view of float64.
func Floats64[T trainer.Number](x []T) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// IsNaN tells whether it is no number.
func IsNaN[T trainer.Number](x T) bool { return x != x }

// Largest returns the place of the first largest number, or of the first NaN, as numpy's argmax.
func Largest[T trainer.Number](x []T) int {
	best := 0
	for i, value := range x {
		if IsNaN(value) {
			return i
		}
		if value > x[best] {
			best = i
		}
	}
	return best
}

// NaN is what stands for a time that nobody can tell.
func NaN() float64 { return math.NaN() }
