//go:build !openblas

package blas

import (
	"runtime/debug"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

var pure gonum.Implementation

// SetThreads does nothing: gonum takes as many goroutines as Go has processors.
func SetThreads(int) {}

// Libraries returns what multiplies, and its version.
func Libraries() map[string]string {
	return map[string]string{"blas": "gonum " + moduleVersion("gonum.org/v1/gonum")}
}

func moduleVersion(path string) string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, one := range built.Deps {
			if one.Path == path {
				return one.Version
			}
		}
	}
	return "unknown"
}

func transposed(is bool) blas.Transpose {
	if is {
		return blas.Trans
	}
	return blas.NoTrans
}

func product32(
	ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int,
) {
	pure.Sgemm(transposed(ta), transposed(tb), m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
}

func product64(
	ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int,
) {
	pure.Dgemm(transposed(ta), transposed(tb), m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
}
