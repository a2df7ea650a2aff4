package graph

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// described are the arrays of layers, without values.
func described(layers []plan.Layer, prefix string) (weights []plan.Weight) {
	add := func(name string, trained bool, shape ...int) {
		array := plan.Array{Dtype: "float64", Shape: shape}
		weights = append(weights, plan.Weight{Name: name, Trained: trained, Array: array})
	}
	for i, layer := range layers {
		name := fmt.Sprintf("%s%d", prefix, i)
		switch layer.Kind {
		case "Linear":
			add(name+".weight", true, layer.Outputs, layer.Inputs)
			add(name+".bias", true, layer.Outputs)
		case "Conv2d":
			add(name+".weight", true, layer.Outputs, layer.Inputs, layer.Kernel, layer.Kernel)
			if layer.Bias {
				add(name+".bias", true, layer.Outputs)
			}
		case "BatchNorm2d":
			add(name+".weight", true, layer.Channels)
			add(name+".bias", true, layer.Channels)
			add(name+".running_mean", false, layer.Channels)
			add(name+".running_var", false, layer.Channels)
		case "Residual":
			weights = append(weights, described(layer.Body, name+".body.")...)
			weights = append(weights, described(layer.Shortcut, name+".shortcut.")...)
		case "Branches":
			for i, branch := range layer.Branches {
				weights = append(weights, described(branch, fmt.Sprintf("%s.%d.", name, i))...)
			}
		}
	}
	return weights
}

func norm2d(channels int) plan.Layer {
	return plan.Layer{Kind: "BatchNorm2d", Channels: channels, Momentum: 0.1, Epsilon: 1e-5}
}

func conv(inputs, outputs, kernel, stride int, bias bool) plan.Layer {
	return plan.Layer{Kind: "Conv2d", Inputs: inputs, Outputs: outputs, Kernel: kernel, Padding: kernel / 2, Stride: stride, Bias: bias}
}

// models are small ones that have every layer, every shape of residual, and sizes that no window fits.
var models = []struct {
	name   string
	sample []int
	loss   string
	layers []plan.Layer
}{
	{"linear", []int{5}, "mse", []plan.Layer{
		{Kind: "Linear", Inputs: 5, Outputs: 4}, {Kind: "Sigmoid"}, {Kind: "Linear", Inputs: 4, Outputs: 3},
	}},
	{"convolution", []int{2, 8, 8}, "cross-entropy", []plan.Layer{
		conv(2, 3, 3, 1, true), {Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 2}, conv(3, 4, 3, 1, true),
		{Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 2}, {Kind: "Flatten"}, {Kind: "Linear", Inputs: 16, Outputs: 3},
	}},
	{"branches", []int{2, 8, 7}, "cross-entropy", []plan.Layer{
		conv(2, 4, 3, 1, true),
		{Kind: "Branches", Branches: [][]plan.Layer{
			{conv(4, 3, 1, 1, false), norm2d(3), {Kind: "ReLU"}}, {{Kind: "MaxPool2d", Size: 3, Stride: 1, Padding: 1}, conv(4, 2, 1, 1, true)},
			{},
		}},
		{Kind: "ReLU"}, {Kind: "GlobalAveragePool"}, {Kind: "Linear", Inputs: 9, Outputs: 3},
	}},
	{"residual", []int{2, 9, 7}, "cross-entropy", []plan.Layer{
		conv(2, 4, 7, 2, false), norm2d(4), {Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 3, Stride: 2, Padding: 1},
		{Kind: "Residual", Body: []plan.Layer{conv(4, 4, 3, 1, false), norm2d(4), {Kind: "ReLU"}, conv(4, 4, 3, 1, false), norm2d(4)}},
		{Kind: "ReLU"},
		{Kind: "Residual", Body: []plan.Layer{conv(4, 3, 1, 1, false), norm2d(3), {Kind: "ReLU"}, conv(3, 6, 3, 2, false), norm2d(6)},
			Shortcut: []plan.Layer{conv(4, 6, 1, 2, false), norm2d(6)}},
		{Kind: "ReLU"}, {Kind: "GlobalAveragePool"}, {Kind: "Linear", Inputs: 6, Outputs: 3},
	}},
	{"pre-activated", []int{2, 6, 6}, "mse", []plan.Layer{
		conv(2, 4, 3, 1, false),
		{Kind: "Residual", Body: []plan.Layer{norm2d(4), {Kind: "ReLU"}, conv(4, 4, 3, 1, false)}},
		{Kind: "Residual", Body: []plan.Layer{norm2d(4), {Kind: "ReLU"}, conv(4, 4, 1, 2, false)}, Shortcut: []plan.Layer{conv(4, 4, 1, 2, false)}},
		norm2d(4), {Kind: "ReLU"}, {Kind: "GlobalAveragePool"}, {Kind: "Linear", Inputs: 4, Outputs: 3},
	}},
}

// planned is a plan of the model with weights that are drawn.
func planned(t *testing.T, i, n int) *plan.Plan {
	t.Helper()
	draw := rand.New(rand.NewSource(int64(i)))
	one := models[i]
	p := &plan.Plan{
		Cell: plan.Cell{Batch: n, Threads: 2}, Replicas: 1, Rule: plan.Rule{Optimiser: "sgd", Momentum: 0.9, Loss: one.loss},
		Model: plan.Model{Sample: one.sample, Inputs: "float", Layers: one.layers}, Weights: described(one.layers, ""),
	}
	var bytes []byte
	file := filepath.Join(t.TempDir(), "weights")
	for j := range p.Weights {
		weight := &p.Weights[j]
		weight.File, weight.Offset = file, int64(len(bytes))
		for range weight.Count() {
			value := draw.NormFloat64() * 0.5
			if strings.HasSuffix(weight.Name, "_var") {
				value = 1 + value*value
			}
			bytes = binary.LittleEndian.AppendUint64(bytes, math.Float64bits(value))
		}
	}
	if err := os.WriteFile(file, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func made[T trainer.Number](t *testing.T, i, n int) (trainer.Trainer[T], trainer.Batch[T]) {
	t.Helper()
	net, err := New[T](planned(t, i, n))
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewSource(int64(i)))
	size := n
	for _, axis := range models[i].sample {
		size *= axis
	}
	batch := trainer.Batch[T]{N: n, X: make([]T, size), Labels: make([]int64, n)}
	for j := range batch.X {
		batch.X[j] = T(draw.NormFloat64())
	}
	for j := range batch.Labels {
		batch.Labels[j] = int64(draw.Intn(3))
	}
	return net, batch
}

func lossOf[T trainer.Number](t *testing.T, net trainer.Trainer[T], batch trainer.Batch[T]) float64 {
	t.Helper()
	loss, err := net.ForwardBackward(batch)
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	for i, model := range models {
		t.Run(model.name, func(t *testing.T) {
			net, batch := made[float64](t, i, 4)
			lossOf(t, net, batch)
			gradient := slices.Clone(net.Gradient())
			const step = 1e-6
			for j := range net.Parameters() {
				old := net.Parameters()[j]
				net.Parameters()[j] = old + step
				above := lossOf(t, net, batch)
				net.Parameters()[j] = old - step
				below := lossOf(t, net, batch)
				net.Parameters()[j] = old
				if slope := (above - below) / (2 * step); math.Abs(slope-gradient[j]) > 2e-8*(1+math.Abs(slope)) {
					t.Errorf("parameter %d: gradient %g, differences say %g", j, gradient[j], slope)
				}
			}
		})
	}
}

func TestAStepReadsTheWeightsAndChangesNothing(t *testing.T) {
	// The tape machine may overwrite what it takes for no longer needed.
	for i, model := range models {
		net, batch := made[float64](t, i, 3)
		before, x := slices.Clone(net.Parameters()), slices.Clone(batch.X)
		first := lossOf(t, net, batch)
		gradient := slices.Clone(net.Gradient())
		second := lossOf(t, net, batch)
		if !slices.Equal(before, net.Parameters()) || !slices.Equal(x, batch.X) {
			t.Errorf("%s: a step changed its weights or its inputs", model.name)
		}
		if first != second || !slices.Equal(gradient, net.Gradient()) {
			t.Errorf("%s: the same step again gives %v, not %v", model.name, second, first)
		}
	}
}

func TestFloat32IsNearFloat64(t *testing.T) {
	for i, model := range models {
		exact, batch := made[float64](t, i, 4)
		short, rounded := made[float32](t, i, 4)
		loss, near := lossOf(t, exact, batch), lossOf(t, short, rounded)
		if math.Abs(loss-near) > 1e-5*(1+loss) {
			t.Errorf("%s: loss %v in float32, %v in float64", model.name, near, loss)
		}
		for j, slope := range exact.Gradient() {
			if math.Abs(slope-float64(short.Gradient()[j])) > 1e-4*(1+math.Abs(slope)) {
				t.Errorf("%s: gradient %d is %v in float32, %v in float64", model.name, j, short.Gradient()[j], slope)
			}
		}
	}
}

func TestLayersAreToldTheLastFirst(t *testing.T) {
	for i, model := range models {
		net, batch := made[float64](t, i, 2)
		var told, want []int
		var then [][]float64
		net.OnReady(func(layer int) {
			part := net.Layers()[layer]
			told, then = append(told, layer), append(then, slices.Clone(net.Gradient()[part.First:part.Last]))
		})
		for range 2 {
			told, then, want = nil, nil, nil
			clear(net.Gradient())
			lossOf(t, net, batch)
			for j, layer := range told {
				part := net.Layers()[layer]
				if !slices.Equal(then[j], net.Gradient()[part.First:part.Last]) {
					t.Errorf("%s: layer %d was told before its gradient was final", model.name, layer)
				}
			}
			for layer := len(net.Layers()) - 1; layer >= 0; layer-- {
				want = append(want, layer)
			}
			if !slices.Equal(told, want) {
				t.Errorf("%s: layers were told in the order %v", model.name, told)
			}
		}
		end := 0
		for _, part := range net.Layers() {
			if part.First != end || part.Last <= end {
				t.Errorf("%s: layers %v do not cover the gradient", model.name, net.Layers())
			}
			end = part.Last
		}
		if end != len(net.Gradient()) {
			t.Errorf("%s: layers %v end before %d", model.name, net.Layers(), len(net.Gradient()))
		}
	}
}

func TestPredictionsTakeAnyNumberOfSamples(t *testing.T) {
	for i, model := range models {
		net, batch := made[float64](t, i, 3)
		each := len(batch.X) / 3
		all, err := net.Predict(slices.Concat(batch.X, batch.X[:2*each]), 5)
		if err != nil {
			t.Fatal(err)
		}
		all = slices.Clone(all)
		for sample := range 3 {
			one, err := net.Predict(batch.X[sample*each:(sample+1)*each], 1)
			if err != nil {
				t.Fatal(err)
			}
			if classes := len(all) / 5; !slices.Equal(one, all[sample*classes:(sample+1)*classes]) {
				t.Errorf("%s: sample %d alone gives %v, among others %v", model.name, sample, one, all[sample*classes:(sample+1)*classes])
			}
		}
	}
}

func TestAResumedTrainingGoesOnWhereItWas(t *testing.T) {
	for i, model := range models {
		net, batch := made[float64](t, i, 3)
		start := net.Weights()
		first := []float64{lossOf(t, net, batch)}
		must(t, net.Update(0.1))
		first = append(first, lossOf(t, net, batch))
		velocity := make([][]float64, 0)
		for j := range net.(*Net[float64]).plan.Weights {
			if weight := &net.(*Net[float64]).plan.Weights[j]; weight.Trained {
				velocity = append(velocity, make([]float64, weight.Count()))
			}
		}
		must(t, net.Resume(trainer.State{Weights: start, States: [][][]float64{velocity}}))
		if again := lossOf(t, net, batch); again != first[0] {
			t.Errorf("%s: the first loss is %v, resumed %v", model.name, first[0], again)
		}
		must(t, net.Update(0.1))
		if again := lossOf(t, net, batch); again != first[1] {
			t.Errorf("%s: the second loss is %v, resumed %v", model.name, first[1], again)
		}
	}
}

func TestWhatNoNetCanBeIsToldOnce(t *testing.T) {
	for _, one := range []struct {
		said   string
		change func(p *plan.Plan)
	}{
		{`no weights "0.weight"`, func(p *plan.Plan) { p.Weights = p.Weights[1:] }},
		{`no operator`, func(p *plan.Plan) { p.Model.Layers = append([]plan.Layer{{Kind: "Attention"}}, p.Model.Layers...) }},
		{`loss "hinge" is not known`, func(p *plan.Plan) { p.Rule.Loss = "hinge" }},
		{`no layer takes the trained weights "9.weight"`, func(p *plan.Plan) {
			p.Weights = append(p.Weights, p.Weights[0])
			p.Weights[len(p.Weights)-1].Name = "9.weight"
		}},
		{`not a tickets-transformer of int64`, func(p *plan.Plan) { p.Model.Kind, p.Model.Inputs = "tickets-transformer", "int64" }},
	} {
		p := planned(t, 1, 2)
		one.change(p)
		_, err := New[float64](p)
		if err == nil || !strings.Contains(err.Error(), one.said) || fault.CauseOf(err) != fault.BadInput {
			t.Errorf("a plan with another fault than %s: %v", one.said, err)
		}
	}
	net, batch := made[float64](t, 0, 2)
	batch.Labels[1] = 3
	if _, err := net.ForwardBackward(batch); err == nil || fault.CauseOf(err) != fault.BadInput {
		t.Errorf("a label of no class: %v", err)
	}
}

func TestRunningStatisticsHaveTheSampleVariance(t *testing.T) {
	// Of 0, 1, 2, 3 and 4, 5, 6, 7 as one channel: mean 3.5, sum of squares 42, of 8 numbers.
	mean, variance := []float64{1}, []float64{2}
	x := G.NewGraph()
	y, err := batchNorm(variable(x, "x", counted(2, 1, 2, 2)), variable(x, "w", counted(1)), variable(x, "b", counted(1)),
		mean, variance, 0.1, 1e-5, true)
	must(t, err)
	if got := y.Shape(); !slices.Equal(got, []int{2, 1, 2, 2}) {
		t.Errorf("shape %v", got)
	}
	must(t, G.NewTapeMachine(x).RunAll())
	if math.Abs(mean[0]-(1+0.1*2.5)) > 1e-15 || math.Abs(variance[0]-(2+0.1*(42.0/7-2))) > 1e-15 {
		t.Errorf("running mean %v and variance %v, expected 1.25 and 2.4", mean[0], variance[0])
	}
}
