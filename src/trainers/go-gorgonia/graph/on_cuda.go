//go:build cuda

package graph

import (
	G "gorgonia.org/gorgonia"
	nnops "gorgonia.org/gorgonia/ops/nn"
	"gorgonia.org/tensor"

	"transect-trainer-go/fault"
)

// Device is where convolutions and products of matrices are computed. The operators of this package
// stay on the CPU: Gorgonia brings their inputs there and their results back.
const Device = "cuda"

// convolve adds cuDNN's convolution of images x (n, c, h, w).
func convolve(x, weight *G.Node, kernel, padding, stride int) (*G.Node, error) {
	return nnops.Conv2d(x, weight, tensor.Shape{kernel, kernel}, []int{padding, padding}, []int{stride, stride}, []int{1, 1})
}

// machineOf makes the tape machine of a compiled graph. Gorgonia panics where it finds no GPU.
func machineOf(graph *G.ExprGraph, program G.VMOpt) (machine G.VM, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fault.New(fault.MissingDependency, "Gorgonia's CUDA cannot be used: %v", value)
		}
	}()
	return G.NewTapeMachine(graph, program), nil
}
