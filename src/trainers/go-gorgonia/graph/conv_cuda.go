//go:build cuda

package graph

import (
	G "gorgonia.org/gorgonia"
	nnops "gorgonia.org/gorgonia/ops/nn"
	"gorgonia.org/tensor"
)

// Device is where convolutions and products of matrices are computed. The operators of this package
// stay on the CPU: Gorgonia brings their inputs there and their results back.
const Device = "cuda"

// convolve adds cuDNN's convolution of images x (n, c, h, w).
func convolve(x, weight *G.Node, kernel, padding, stride int) (*G.Node, error) {
	return nnops.Conv2d(x, weight, tensor.Shape{kernel, kernel}, []int{padding, padding}, []int{stride, stride}, []int{1, 1})
}
