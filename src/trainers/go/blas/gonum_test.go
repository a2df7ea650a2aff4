//go:build !openblas

package blas

import "testing"

// Tiles are the same with any number of threads, so that every bit is.
func TestThreadsChangeNoBit(t *testing.T) {
	const m, n, k = 70, 200, 3000
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i] = float32(i%17) / 3
	}
	for i := range b {
		b[i] = float32(i%23) / 7
	}
	var first []float32
	for _, threads := range []int{1, 2, 4} {
		SetThreads(threads)
		c := make([]float32, m*n)
		Product(false, true, m, n, k, a, k, b, k, 0, c, n)
		if first == nil {
			first = c
		}
		for i := range c {
			if c[i] != first[i] {
				t.Fatalf("%d threads: number %d is %g, not %g", threads, i, c[i], first[i])
			}
		}
	}
}
