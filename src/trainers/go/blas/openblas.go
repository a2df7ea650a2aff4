//go:build openblas

package blas

// The wheel scipy-openblas32 puts `scipy_` before all names; build.sh says where it is.

/*
#cgo noescape scipy_cblas_sgemm
#cgo nocallback scipy_cblas_sgemm
#cgo noescape scipy_cblas_dgemm
#cgo nocallback scipy_cblas_dgemm
#include "cblas.h"
*/
import "C"

import "unsafe"

// SetThreads holds OpenBLAS's own threads to that many.
func SetThreads(threads int) { C.scipy_openblas_set_num_threads(C.int(threads)) }

// Libraries returns what multiplies: version, options and the kernels chosen for this processor.
func Libraries() map[string]string {
	config := C.GoString(C.scipy_openblas_get_config())
	return map[string]string{"blas": config + " (" + C.GoString(C.scipy_openblas_get_corename()) + ")"}
}

func transposed(is bool) C.enum_CBLAS_TRANSPOSE {
	if is {
		return C.CblasTrans
	}
	return C.CblasNoTrans
}

func product32(
	ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int,
) {
	C.scipy_cblas_sgemm(C.CblasRowMajor, transposed(ta), transposed(tb), C.int(m), C.int(n), C.int(k), 1,
		(*C.float)(unsafe.Pointer(&a[0])), C.int(lda), (*C.float)(unsafe.Pointer(&b[0])), C.int(ldb),
		C.float(beta), (*C.float)(unsafe.Pointer(&c[0])), C.int(ldc))
}

func product64(
	ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int,
) {
	C.scipy_cblas_dgemm(C.CblasRowMajor, transposed(ta), transposed(tb), C.int(m), C.int(n), C.int(k), 1,
		(*C.double)(unsafe.Pointer(&a[0])), C.int(lda), (*C.double)(unsafe.Pointer(&b[0])), C.int(ldb),
		C.double(beta), (*C.double)(unsafe.Pointer(&c[0])), C.int(ldc))
}
