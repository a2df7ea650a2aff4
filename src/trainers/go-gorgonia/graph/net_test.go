package graph

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"transect-trainer-go/trainer"
)

// descent is plain SGD: enough to see that an update follows the gradient.
type descent[T trainer.Number] struct{}

func (descent[T]) Update(weights, gradient []T, rate float64) error {
	for i := range weights {
		weights[i] -= T(rate) * gradient[i]
	}
	return nil
}
func (descent[T]) States() [][]T  { return nil }
func (descent[T]) SetUpdates(int) {}

// described counts the arrays of layers and draws their values.
func described(layers []Layer, prefix string, draw *rand.Rand) (weights []Weight) {
	add := func(name string, trained bool, shape ...int) {
		size := 1
		for _, axis := range shape {
			size *= axis
		}
		values := make([]float64, size)
		for i := range values {
			values[i] = draw.NormFloat64() * 0.5
			if name[len(name)-3:] == "var" {
				values[i] = 1 + values[i]*values[i]
			}
		}
		weights = append(weights, Weight{Name: name, Trained: trained, Shape: shape, Values: values})
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
			weights = append(weights, described(layer.Body, name+".body.", draw)...)
			weights = append(weights, described(layer.Shortcut, name+".shortcut.", draw)...)
		}
	}
	return weights
}

func norm2d(channels int) Layer {
	return Layer{Kind: "BatchNorm2d", Channels: channels, Momentum: 0.1, Epsilon: 1e-5}
}

func conv(inputs, outputs, kernel, stride int, bias bool) Layer {
	return Layer{Kind: "Conv2d", Inputs: inputs, Outputs: outputs, Kernel: kernel, Padding: kernel / 2, Stride: stride, Bias: bias}
}

// models are small ones that have every layer, every shape of residual, and sizes that no window fits.
var models = []struct {
	name   string
	sample []int
	loss   string
	layers []Layer
}{
	{"linear", []int{5}, "mse", []Layer{
		{Kind: "Linear", Inputs: 5, Outputs: 4}, {Kind: "Sigmoid"}, {Kind: "Linear", Inputs: 4, Outputs: 3},
	}},
	{"convolution", []int{2, 8, 8}, "cross-entropy", []Layer{
		conv(2, 3, 3, 1, true), {Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 2}, conv(3, 4, 3, 1, true),
		{Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 2}, {Kind: "Flatten"}, {Kind: "Linear", Inputs: 16, Outputs: 3},
	}},
	{"residual", []int{2, 9, 7}, "cross-entropy", []Layer{
		conv(2, 4, 7, 2, false), norm2d(4), {Kind: "ReLU"}, {Kind: "MaxPool2d", Size: 3, Stride: 2, Padding: 1},
		{Kind: "Residual", Body: []Layer{conv(4, 4, 3, 1, false), norm2d(4), {Kind: "ReLU"}, conv(4, 4, 3, 1, false), norm2d(4)}},
		{Kind: "ReLU"},
		{Kind: "Residual", Body: []Layer{conv(4, 3, 1, 1, false), norm2d(3), {Kind: "ReLU"}, conv(3, 6, 3, 2, false), norm2d(6)},
			Shortcut: []Layer{conv(4, 6, 1, 2, false), norm2d(6)}},
		{Kind: "ReLU"}, {Kind: "GlobalAveragePool"}, {Kind: "Linear", Inputs: 6, Outputs: 3},
	}},
	{"pre-activated", []int{2, 6, 6}, "mse", []Layer{
		conv(2, 4, 3, 1, false),
		{Kind: "Residual", Body: []Layer{norm2d(4), {Kind: "ReLU"}, conv(4, 4, 3, 1, false)}},
		{Kind: "Residual", Body: []Layer{norm2d(4), {Kind: "ReLU"}, conv(4, 4, 1, 2, false)}, Shortcut: []Layer{conv(4, 4, 1, 2, false)}},
		norm2d(4), {Kind: "ReLU"}, {Kind: "GlobalAveragePool"}, {Kind: "Linear", Inputs: 4, Outputs: 3},
	}},
}

func made[T trainer.Number](t *testing.T, i, n int) (*Trainer[T], trainer.Batch[T]) {
	t.Helper()
	draw := rand.New(rand.NewSource(int64(i)))
	one := models[i]
	net, err := New(Model{Layers: one.layers, Sample: one.sample, Loss: one.loss, Batch: n,
		Weights: described(one.layers, "", draw)}, func(int) (Rule[T], error) { return descent[T]{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	size := n
	for _, axis := range one.sample {
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

func lossOf[T trainer.Number](t *testing.T, net *Trainer[T], batch trainer.Batch[T]) float64 {
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
		net.OnReady(func(layer int) { told = append(told, layer) })
		for range 2 {
			told, want = nil, nil
			lossOf(t, net, batch)
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
