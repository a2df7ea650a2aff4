package nets

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// weightsOf returns the names and shapes of a list's arrays, as layers.weight_shapes.
func weightsOf(layers []plan.Layer) []plan.Weight {
	var all []plan.Weight
	add := func(trained bool, shape ...int) {
		all = append(all, plan.Weight{Name: "w", Trained: trained, Array: plan.Array{Dtype: "float64", Shape: shape}})
	}
	for _, one := range layers {
		switch one.Kind {
		case "Linear":
			add(true, one.Outputs, one.Inputs)
			add(true, one.Outputs)
		case "Conv2d":
			add(true, one.Outputs, one.Inputs/max(1, one.Groups), one.Kernel, one.Kernel)
			if one.Bias {
				add(true, one.Outputs)
			}
		case "BatchNorm2d":
			add(true, one.Channels)
			add(true, one.Channels)
			add(false, one.Channels)
			add(false, one.Channels)
		case "Residual":
			all = append(all, weightsOf(one.Body)...)
			all = append(all, weightsOf(one.Shortcut)...)
		case "Branches":
			for _, branch := range one.Branches {
				all = append(all, weightsOf(branch)...)
			}
		}
	}
	return all
}

// planOf is a plan of a model with random weights.
func planOf(t testing.TB, layers []plan.Layer, sample []int, loss string, batch, threads int) *plan.Plan {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	p := &plan.Plan{Replicas: 1, ModelParts: 1, Model: plan.Model{Sample: sample, Inputs: "float", Score: "accuracy", Layers: layers}}
	p.Cell.Batch, p.Cell.Threads = batch, threads
	p.Rule = plan.Rule{Optimiser: "sgd", Momentum: 0.9, Loss: loss}
	p.Weights = weightsOf(layers)
	file, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at := int64(0)
	for i := range p.Weights {
		one := &p.Weights[i]
		one.File, one.Offset = file.Name(), at
		values := make([]float64, one.Count())
		for k := range values {
			values[k] = draw.Float64() - 0.5
			if !one.Trained || len(one.Shape) == 1 {
				values[k] = 0.5 + draw.Float64()
			}
		}
		if err := binary.Write(file, binary.LittleEndian, values); err != nil {
			t.Fatal(err)
		}
		at += 8 * int64(len(values))
	}
	return p
}

func batchOf[T trainer.Number](p *plan.Plan, classes int) trainer.Batch[T] {
	draw := rand.New(rand.NewPCG(3, 4))
	size := shape(p.Model.Sample).numbers()
	batch := trainer.Batch[T]{N: p.Cell.Batch, X: make([]T, p.Cell.Batch*size), Labels: make([]int64, p.Cell.Batch)}
	for i := range batch.X {
		batch.X[i] = T(draw.NormFloat64())
	}
	for i := range batch.Labels {
		batch.Labels[i] = draw.Int64N(int64(classes))
	}
	return batch
}

func dense(in, out int) plan.Layer { return plan.Layer{Kind: "Linear", Inputs: in, Outputs: out} }

func conv(in, out, kernel, padding, stride int, bias bool) plan.Layer {
	return plan.Layer{Kind: "Conv2d", Inputs: in, Outputs: out, Kernel: kernel, Padding: padding, Stride: stride, Bias: bias}
}

func grouped(groups int, one plan.Layer) plan.Layer {
	one.Groups = groups
	return one
}

func norm(channels int) plan.Layer {
	return plan.Layer{Kind: "BatchNorm2d", Channels: channels, Momentum: 0.1, Epsilon: 1e-5}
}

func normed(features int) plan.Layer {
	return plan.Layer{Kind: "LayerNorm", Features: features, Epsilon: 1e-5}
}

func pool(size, stride, padding int) plan.Layer {
	return plan.Layer{Kind: "MaxPool2d", Size: size, Stride: stride, Padding: padding}
}

var (
	relu, sigmoid  = plan.Layer{Kind: "ReLU"}, plan.Layer{Kind: "Sigmoid"}
	flat, averages = plan.Layer{Kind: "Flatten"}, plan.Layer{Kind: "GlobalAveragePool"}
)

type model struct {
	name   string
	sample []int
	loss   string
	layers []plan.Layer
}

func models() []model {
	one := plan.Layer{Kind: "Residual", Body: []plan.Layer{sigmoid, conv(3, 4, 3, 1, 2, true), norm(4)}, Shortcut: []plan.Layer{conv(3, 4, 1, 0, 2, false), sigmoid}}
	two := plan.Layer{Kind: "Residual", Body: []plan.Layer{conv(4, 4, 1, 0, 1, false), relu}}
	// Of which one keeps its input, one pools it, and rectifiers stand first and last.
	three := plan.Layer{Kind: "Branches", Branches: [][]plan.Layer{
		{}, {relu, grouped(4, conv(4, 8, 3, 1, 1, false)), norm(8), relu}, {two, grouped(2, conv(4, 6, 1, 0, 1, true))}, {pool(3, 1, 1)},
	}}
	return []model{
		{"dense, half squares", []int{5}, "mse", []plan.Layer{dense(5, 7), sigmoid, dense(7, 3), sigmoid}},
		{"dense, cross-entropy", []int{5}, "cross-entropy", []plan.Layer{dense(5, 7), relu, dense(7, 3)}},
		{"layer norms", []int{5}, "mse", []plan.Layer{
			dense(5, 7), sigmoid, normed(7), dense(7, 6), normed(6), relu, dense(6, 3), normed(3),
		}},
		{"images as rows", []int{2, 3, 3}, "cross-entropy", []plan.Layer{flat, dense(18, 4)}},
		{"convolutions", []int{3, 7, 6}, "cross-entropy", []plan.Layer{
			conv(3, 4, 3, 1, 1, true), relu, pool(2, 0, 0), conv(4, 3, 2, 0, 1, true), sigmoid, flat, dense(3*2*2, 3),
		}},
		{"strides and overlaps", []int{2, 9, 8}, "mse", []plan.Layer{
			sigmoid, conv(2, 4, 5, 2, 1, false), norm(4), relu, pool(3, 2, 1), conv(4, 5, 3, 2, 3, true), sigmoid, flat, dense(5*3*2, 3),
		}},
		{"residual", []int{3, 8, 8}, "cross-entropy", []plan.Layer{one, two, relu, averages, dense(4, 3)}},
		{"branches", []int{2, 7, 6}, "cross-entropy", []plan.Layer{
			conv(2, 4, 3, 1, 1, true), three, grouped(22, conv(22, 22, 3, 1, 2, false)), relu, averages, dense(22, 3),
		}},
	}
}

// Gradients are those of finite differences: of the weights of every layer, and so of all that is behind it.
func TestGradientsAreThoseOfFiniteDifferences(t *testing.T) {
	for _, one := range models() {
		t.Run(one.name, func(t *testing.T) {
			p := planOf(t, one.layers, one.sample, one.loss, 6, 2)
			made, err := New[float64](p)
			if err != nil {
				t.Fatal(err)
			}
			net := made.(*Net[float64])
			batch := batchOf[float64](p, net.outputs)
			loss := func() float64 {
				value, err := net.ForwardBackward(batch)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
			loss()
			gradient := append([]float64(nil), net.Gradient()...)
			largest := 0.0
			for _, value := range gradient {
				largest = math.Max(largest, math.Abs(value))
			}
			const step = 1e-6
			for i := range gradient {
				kept := net.parameters[i]
				net.parameters[i] = kept + step
				above := loss()
				net.parameters[i] = kept - step
				below := loss()
				net.parameters[i] = kept
				if wanted := (above - below) / (2 * step); math.Abs(wanted-gradient[i]) > 1e-7*(1+largest) {
					t.Errorf("weight %d: gradient %g, by differences %g", i, gradient[i], wanted)
				}
			}
		})
	}
}

// What is unfolded some samples at a time is what is unfolded at once; threads change no number at all.
func TestThreadsChangeNoBit(t *testing.T) {
	layers := []plan.Layer{
		conv(3, 16, 3, 1, 1, true), norm(16), relu, pool(2, 0, 0), conv(16, 20, 3, 1, 2, true), relu, flat, dense(20*8*8, 5),
	}
	var first []float64
	for _, threads := range []int{1, 2, 5} {
		p := planOf(t, layers, []int{3, 32, 32}, "cross-entropy", 8, threads)
		made, err := New[float64](p)
		if err != nil {
			t.Fatal(err)
		}
		batch := batchOf[float64](p, 5)
		for range 3 {
			if _, err := made.ForwardBackward(batch); err != nil {
				t.Fatal(err)
			}
			if err := made.Update(0.01); err != nil {
				t.Fatal(err)
			}
		}
		var all []float64
		for _, values := range made.Weights() {
			all = append(all, values...)
		}
		if first == nil {
			first = all
		}
		for i := range all {
			if all[i] != first[i] {
				t.Fatalf("with %d threads number %d is %g, with one %g", threads, i, all[i], first[i])
			}
		}
	}
}

// Layers are told from the last one on, each when its gradient is what it is at the end.
func TestLayersAreReadyFromTheLastOneOn(t *testing.T) {
	one := models()[6]
	p := planOf(t, one.layers, one.sample, one.loss, 4, 1)
	made, err := New[float32](p)
	if err != nil {
		t.Fatal(err)
	}
	ranges := made.Layers()
	var order []int
	kept := map[int][]float32{}
	made.OnReady(func(layer int) {
		order = append(order, layer)
		part := ranges[layer]
		kept[layer] = append([]float32(nil), made.Gradient()[part.First:part.Last]...)
	})
	if _, err := made.ForwardBackward(batchOf[float32](p, 3)); err != nil {
		t.Fatal(err)
	}
	if len(order) != 3 || order[0] != 2 || order[1] != 1 || order[2] != 0 {
		t.Fatalf("layers were ready in order %v", order)
	}
	end := 0
	for layer, part := range ranges {
		if part.First != end {
			t.Errorf("layer %d begins at %d, the one before it ends at %d", layer, part.First, end)
		}
		end = part.Last
		for i, value := range kept[layer] {
			if made.Gradient()[part.First+i] != value {
				t.Errorf("layer %d: number %d changed after it was ready", layer, i)
			}
		}
	}
	if end != len(made.Gradient()) {
		t.Errorf("layers cover %d of %d numbers", end, len(made.Gradient()))
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	for _, one := range models() {
		p := planOf(t, one.layers, one.sample, one.loss, 6, 1)
		made, err := New[float32](p)
		if err != nil {
			t.Fatal(err)
		}
		batch := batchOf[float32](p, made.(*Net[float32]).outputs)
		step := func() {
			if _, err := made.ForwardBackward(batch); err != nil {
				t.Fatal(err)
			}
			if err := made.Update(0.01); err != nil {
				t.Fatal(err)
			}
		}
		if count := testing.AllocsPerRun(20, step); count != 0 {
			t.Errorf("%s: a step allocates %g times", one.name, count)
		}
	}
}

// A number that is none must not vanish behind a rectifier or a maximum.
func TestNaNGoesOn(t *testing.T) {
	p := planOf(t, models()[4].layers, models()[4].sample, "cross-entropy", 2, 1)
	made, err := New[float64](p)
	if err != nil {
		t.Fatal(err)
	}
	batch := batchOf[float64](p, 3)
	batch.X[20] = math.NaN()
	loss, err := made.ForwardBackward(batch)
	if err != nil || !number.IsNaN(loss) {
		t.Errorf("the loss is %g (%v)", loss, err)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	for name, layers := range map[string][]plan.Layer{
		"kind":     {{Kind: "Attention"}},
		"width":    {dense(4, 3)},
		"image":    {pool(2, 0, 0)},
		"residual": {{Kind: "Residual", Body: []plan.Layer{dense(5, 3)}}},
		"branches": {{Kind: "Branches", Branches: [][]plan.Layer{{relu}, {relu}}}},
	} {
		p := planOf(t, layers, []int{5}, "mse", 2, 1)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing was refused", name)
				}
			}()
			_, _ = New[float64](p)
		}()
	}
	p := planOf(t, []plan.Layer{dense(5, 3)}, []int{5}, "mse", 2, 1)
	made, err := New[float64](p)
	if err != nil {
		t.Fatal(err)
	}
	batch := batchOf[float64](p, 3)
	batch.Labels[1] = 3
	if _, err := made.ForwardBackward(batch); err == nil {
		t.Error("a class that the model has not was taken")
	}
}

func digits() ([]plan.Layer, []int) {
	return []plan.Layer{
		conv(1, 16, 3, 1, 1, true), relu, pool(2, 0, 0), conv(16, 32, 3, 1, 1, true), relu, pool(2, 0, 0), flat, dense(128, 10),
	}, []int{1, 8, 8}
}

func benchmark[T trainer.Number](b *testing.B, layers []plan.Layer, sample []int, loss string, batch int) {
	p := planOf(b, layers, sample, loss, batch, 1)
	made, err := New[T](p)
	if err != nil {
		b.Fatal(err)
	}
	data := batchOf[T](p, made.(*Net[T]).outputs)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := made.ForwardBackward(data); err != nil {
			b.Fatal(err)
		}
		if err := made.Update(1e-6); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigits(b *testing.B) {
	layers, sample := digits()
	benchmark[float32](b, layers, sample, "cross-entropy", 64)
}

func BenchmarkIris(b *testing.B) {
	layers := []plan.Layer{dense(4, 30), sigmoid, dense(30, 20), sigmoid, dense(20, 3), sigmoid}
	benchmark[float32](b, layers, []int{4}, "mse", 16)
}
