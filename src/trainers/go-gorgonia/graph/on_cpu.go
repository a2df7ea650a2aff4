//go:build !cuda

package graph

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Device is where convolutions and products of matrices are computed.
const Device = "cpu"

// convolve adds a convolution of images x (n, c, h, w): windows unfolded, then one product.
func convolve(x, weight *G.Node, kernel, padding, stride int) (*G.Node, error) {
	return G.Conv2d(x, weight, tensor.Shape{kernel, kernel}, []int{padding, padding}, []int{stride, stride}, []int{1, 1})
}

// machineOf makes the tape machine of a compiled graph.
func machineOf(graph *G.ExprGraph, program G.VMOpt) (G.VM, error) {
	return G.NewTapeMachine(graph, program), nil
}
