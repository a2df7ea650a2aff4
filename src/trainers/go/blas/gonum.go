//go:build !openblas

package blas

import (
	"runtime/debug"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

var pure gonum.Implementation

// Products are cut in tiles of c, each small enough for gonum to compute it on the spot: of larger ones it
// would make goroutines of its own in every call. A tile's sums do not depend on who computes it, so that results
// are the same with any number of threads.
const (
	tileRows    = 64
	tileColumns = 192
	// Rows of a transposed b are gone through this far at a time, so that they stay in the cache.
	tileTerms = 2048
)

// job is the product under way; there is one at a time.
type job[T trainer.Number] struct {
	ta, tb        bool
	m, n, k       int
	a, b, c       []T
	lda, ldb, ldc int
	beta          T
	across        int
	part          func(part int)
}

var (
	team  = number.NewTeam(1)
	job32 = &job[float32]{}
	job64 = &job[float64]{}
)

func init() {
	job32.part = func(part int) { job32.tile(part, pure.Sgemm) }
	job64.part = func(part int) { job64.tile(part, pure.Dgemm) }
}

// SetThreads says how many goroutines multiply; called before the first product.
func SetThreads(threads int) { team = number.NewTeam(threads) }

type gemm[T trainer.Number] func(ta, tb blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int,
	beta T, c []T, ldc int)

// tile computes one of the tiles, which are counted row by row.
func (j *job[T]) tile(part int, multiply gemm[T]) {
	i, k := part/j.across*tileRows, part%j.across*tileColumns
	rows, columns := min(tileRows, j.m-i), min(tileColumns, j.n-k)
	terms := j.k
	if j.tb {
		terms = min(terms, tileTerms)
	}
	beta := j.beta
	for l := 0; l < j.k; l += terms {
		a, b := i*j.lda+l, l*j.ldb+k
		if j.ta {
			a = l*j.lda + i
		}
		if j.tb {
			b = k*j.ldb + l
		}
		multiply(transposed(j.ta), transposed(j.tb), rows, columns, min(terms, j.k-l), 1,
			j.a[a:], j.lda, j.b[b:], j.ldb, beta, j.c[i*j.ldc+k:], j.ldc)
		beta = 1
	}
}

func (j *job[T]) run() {
	j.across = (j.n + tileColumns - 1) / tileColumns
	team.Run((j.m+tileRows-1)/tileRows*j.across, j.m*j.n*j.k, j.part)
}

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
	part := job32.part
	*job32 = job[float32]{ta: ta, tb: tb, m: m, n: n, k: k, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc, part: part}
	job32.run()
}

func product64(
	ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int,
) {
	part := job64.part
	*job64 = job[float64]{ta: ta, tb: tb, m: m, n: n, k: k, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc, part: part}
	job64.run()
}
