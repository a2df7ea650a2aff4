package graph

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// machine is a compiled graph for n samples: one of the training, with gradients, or of prediction.
type machine[T trainer.Number] struct {
	n       int
	input   []T
	outputs *G.Node
	// nil in prediction.
	loss *loss[T]
	tape G.VM
}

// compile builds the model's graph and its tape. `gradients` has for each trained array
// where its gradient goes and whom to tell; nil in prediction.
func compile[T trainer.Number](
	p *plan.Plan, n int, arrays map[string]array[T], gradients map[string]sink[T],
) (*machine[T], error) {
	build := &builder[T]{
		graph: G.NewGraph(), arrays: arrays, nodes: map[string]*G.Node{}, training: gradients != nil,
	}
	shape := append(tensor.Shape{n}, p.Model.Sample...)
	one := &machine[T]{n: n, input: number.Make[T](shape.TotalSize())}
	x := G.NewTensor(build.graph, dtype[T](), shape.Dims(), G.WithShape(shape.Clone()...), G.WithName("x"),
		G.WithValue(dense(one.input, shape)))
	outputs, err := build.chain(p.Model.Layers, x, "")
	if err != nil {
		return nil, err
	}
	one.outputs = outputs
	wanted := G.Nodes{outputs}
	if gradients != nil {
		var cost *G.Node
		if one.loss, cost, err = meanLoss[T](p.Rule.Loss, outputs); err != nil {
			return nil, err
		}
		taps, err := build.backwards(cost, gradients)
		if err != nil {
			return nil, err
		}
		wanted = append(append(wanted, cost), taps...)
	}
	// Only what the outputs need: Gorgonia differentiates by the images too.
	program, places, err := G.CompileFunction(build.graph, append(G.Nodes{x}, build.weights...), wanted)
	if err != nil {
		return nil, err
	}
	one.tape, err = machineOf(build.graph, G.WithPrecompiled(program, places))
	return one, err
}

// sink is where an array's gradient goes.
type sink[T trainer.Number] struct {
	into []T
	done func()
}

// backwards differentiates the cost by each trained array, and copies the gradients where they belong.
func (b *builder[T]) backwards(cost *G.Node, gradients map[string]sink[T]) (G.Nodes, error) {
	for name := range gradients {
		if b.nodes[name] == nil {
			return nil, fault.Bad("no layer takes the trained weights %q", name)
		}
	}
	slopes, err := G.Grad(cost, b.weights...)
	if err != nil {
		return nil, err
	}
	var taps G.Nodes
	for i, slope := range slopes {
		name := b.weights[i].Name()
		to, trained := gradients[name]
		if size := slope.Shape().TotalSize(); !trained || size != len(to.into) {
			return nil, fault.Bad("%d gradients of the %d trained weights %q", size, len(to.into), name)
		}
		node, err := tap(slope, to.into, to.done)
		if err != nil {
			return nil, err
		}
		taps = append(taps, node)
	}
	return taps, nil
}

// run computes what the graph says of x.
func (m *machine[T]) run(x []T) error {
	if len(x) > len(m.input) {
		return fault.Bad("%d numbers for %d inputs", len(x), len(m.input))
	}
	copy(m.input, x)
	clear(m.input[len(x):])
	defer m.tape.Reset()
	return m.tape.RunAll()
}
