package graph

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// builder adds the layers of a model to a graph.
type builder[T trainer.Number] struct {
	graph *G.ExprGraph
	// All arrays by name; they are read, and running statistics moved, where they lie.
	arrays map[string]array[T]
	// The nodes of trained arrays in the order in which layers take them, and by name.
	weights  G.Nodes
	nodes    map[string]*G.Node
	training bool
}

// array is one of a model's, row after row.
type array[T trainer.Number] struct {
	shape  []int
	values []T
}

// weight is the node of a trained array.
func (b *builder[T]) weight(name string) (*G.Node, error) {
	found, is := b.arrays[name]
	if !is {
		return nil, fault.Bad("the plan has no weights %q", name)
	}
	shape := tensor.Shape(found.shape)
	node := G.NewTensor(b.graph, dtype[T](), shape.Dims(), G.WithShape(shape.Clone()...), G.WithName(name),
		G.WithValue(dense(found.values, shape)))
	b.weights, b.nodes[name] = append(b.weights, node), node
	return node, nil
}

// chain adds layers one after another; prefix is that of their arrays' names.
func (b *builder[T]) chain(layers []plan.Layer, x *G.Node, prefix string) (*G.Node, error) {
	for i, layer := range layers {
		name := fmt.Sprintf("%s%d", prefix, i)
		after, err := b.layer(layer, x, name)
		if err != nil {
			return nil, fmt.Errorf("layer %s (%s) of samples of shape %v: %w", name, layer.Kind, x.Shape()[1:], err)
		}
		x = after
	}
	return x, nil
}

func (b *builder[T]) layer(layer plan.Layer, x *G.Node, name string) (*G.Node, error) {
	switch layer.Kind {
	case "Linear":
		return b.linear(x, name)
	case "Conv2d":
		return b.convolution(layer, x, name)
	case "BatchNorm2d":
		return b.norm(layer, x, name)
	case "MaxPool2d":
		step := layer.Stride
		if step == 0 {
			step = layer.Size
		}
		return maxPool[T](x, layer.Size, step, layer.Padding)
	case "GlobalAveragePool":
		return globalAveragePool[T](x)
	case "ReLU":
		return relu[T](x)
	case "Sigmoid":
		return G.Sigmoid(x)
	case "Flatten":
		return G.Reshape(x, tensor.Shape{x.Shape()[0], x.Shape()[1:].TotalSize()})
	case "Residual":
		return b.residual(layer, x, name)
	case "Branches":
		return b.branches(layer, x, name)
	}
	return nil, fault.Bad("Gorgonia's nets have no operator for it")
}

func (b *builder[T]) linear(x *G.Node, name string) (*G.Node, error) {
	weight, err := b.weight(name + ".weight")
	if err != nil {
		return nil, err
	}
	turned, err := G.Transpose(weight, 1, 0)
	if err != nil {
		return nil, err
	}
	product, err := G.Mul(x, turned)
	if err != nil {
		return nil, err
	}
	return b.biased(product, name)
}

func (b *builder[T]) biased(x *G.Node, name string) (*G.Node, error) {
	bias, err := b.weight(name + ".bias")
	if err != nil {
		return nil, err
	}
	return addBias[T](x, bias)
}

func (b *builder[T]) convolution(layer plan.Layer, x *G.Node, name string) (*G.Node, error) {
	if layer.Groups > 1 {
		return nil, fault.Bad("Gorgonia's convolutions have no groups")
	}
	weight, err := b.weight(name + ".weight")
	if err != nil {
		return nil, err
	}
	y, err := convolve(x, weight, layer.Kernel, layer.Padding, layer.Stride)
	if err != nil || !layer.Bias {
		return y, err
	}
	return b.biased(y, name)
}

func (b *builder[T]) norm(layer plan.Layer, x *G.Node, name string) (*G.Node, error) {
	weight, err := b.weight(name + ".weight")
	if err != nil {
		return nil, err
	}
	bias, err := b.weight(name + ".bias")
	if err != nil {
		return nil, err
	}
	mean, variance := b.arrays[name+".running_mean"], b.arrays[name+".running_var"]
	if len(mean.values) != layer.Channels || len(variance.values) != layer.Channels {
		return nil, fault.Bad("%d and %d running statistics of %d channels",
			len(mean.values), len(variance.values), layer.Channels)
	}
	return batchNorm(x, weight, bias, mean.values, variance.values, layer.Momentum, layer.Epsilon, b.training)
}

func (b *builder[T]) residual(layer plan.Layer, x *G.Node, name string) (*G.Node, error) {
	body, err := b.chain(layer.Body, x, name+".body.")
	if err != nil {
		return nil, err
	}
	shortcut, err := b.chain(layer.Shortcut, x, name+".shortcut.")
	if err != nil {
		return nil, err
	}
	return G.Add(body, shortcut)
}

func (b *builder[T]) branches(layer plan.Layer, x *G.Node, name string) (*G.Node, error) {
	var ends G.Nodes
	for i, branch := range layer.Branches {
		end, err := b.chain(branch, x, fmt.Sprintf("%s.%d.", name, i))
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return G.Concat(1, ends...)
}
