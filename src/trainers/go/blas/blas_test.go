package blas

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Sums in whatever order agree with plain loops; strides, tiles and both orders of storage do.
func TestProductsAreThoseOfPlainLoops(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	numbers := func(n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = draw.NormFloat64()
		}
		return all
	}
	for _, threads := range []int{1, 3} {
		SetThreads(threads)
		for _, size := range [][3]int{{1, 1, 1}, {3, 5, 7}, {70, 400, 9}, {70, 5, 5000}, {64, 192, 2}} {
			m, n, k := size[0], size[1], size[2]
			for mode := range 4 {
				ta, tb := mode&1 == 1, mode&2 == 2
				lda, ldb, ldc := k+2, n+1, n+3
				rowsA, rowsB := m, k
				if ta {
					lda, rowsA = m+2, k
				}
				if tb {
					ldb, rowsB = k+1, n
				}
				a, b, c := numbers(rowsA*lda), numbers(rowsB*ldb), numbers(m*ldc)
				before := append([]float64(nil), c...)
				Product(ta, tb, m, n, k, a, lda, b, ldb, 1, c, ldc)
				for i := range m {
					for j := range ldc {
						wanted := before[i*ldc+j]
						for l := 0; j < n && l < k; l++ {
							x, y := i*lda+l, l*ldb+j
							if ta {
								x = l*lda + i
							}
							if tb {
								y = j*ldb + l
							}
							wanted += a[x] * b[y]
						}
						if got := c[i*ldc+j]; math.Abs(got-wanted) > 1e-10*math.Sqrt(float64(k)) {
							t.Fatalf("%v transposed %v %v: c[%d, %d] is %g, expected %g", size, ta, tb, i, j, got, wanted)
						}
					}
				}
			}
		}
	}
}
