// Package blas multiplies matrices: by gonum in pure Go, or with the build tag `openblas` by OpenBLAS.
package blas

import (
	"transect-trainer-go/number"
	"transect-trainer-go/trainer"
)

// Product computes c = op(a) op(b) + beta c, row-major: op(a) is m x k, op(b) k x n, c m x n; `ta` and `tb`
// say that a or b is stored transposed. lda, ldb and ldc are the distances of rows as they are stored. There
// is one product at a time.
func Product[T trainer.Number](
	ta, tb bool, m, n, k int, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int,
) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	if number.Size[T]() == 4 {
		product32(ta, tb, m, n, k, number.Floats32(a), lda, number.Floats32(b), ldb,
			float32(beta), number.Floats32(c), ldc)
		return
	}
	product64(ta, tb, m, n, k, number.Floats64(a), lda, number.Floats64(b), ldb,
		float64(beta), number.Floats64(c), ldc)
}
