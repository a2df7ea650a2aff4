package graph

// What is wrong in Gorgonia v0.9.18 and tensor v0.9.24, each shown by the smallest graph: why this package
// has operators of its own (docs/go.md). A test that fails after an upgrade says that one of them may go.

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// counted are the numbers 0, 1, 2 ... as a tensor.
func counted(shape ...int) *tensor.Dense {
	size := tensor.Shape(shape).TotalSize()
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(tensor.Range(tensor.Float64, 0, size)))
}

func variable(graph *G.ExprGraph, name string, value *tensor.Dense) *G.Node {
	return G.NewTensor(graph, tensor.Float64, value.Dims(), G.WithShape(value.Shape().Clone()...), G.WithName(name), G.WithValue(value))
}

func numbers(value G.Value) []float64 { return value.Data().([]float64) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// slope is the gradient of the sum of what `layer` makes of x, by the tape machine.
func slope(t *testing.T, x *tensor.Dense, layer func(x *G.Node) (*G.Node, error)) []float64 {
	t.Helper()
	graph := G.NewGraph()
	node := variable(graph, "x", x)
	y, err := layer(node)
	must(t, err)
	slopes, err := G.Grad(G.Must(G.Sum(y)), node)
	must(t, err)
	must(t, G.NewTapeMachine(graph).RunAll())
	return numbers(slopes[0].Value())
}

func TestLispMachineLosesGradientsOfResiduals(t *testing.T) {
	// y = 2 x + x by a convolution of 1 x 1 and a shortcut: the gradient is 3 everywhere. The derivative of
	// im2col overwrites that of x instead of adding to it.
	graph := G.NewGraph()
	x := variable(graph, "x", counted(1, 1, 2, 2))
	weight := variable(graph, "w", tensor.New(tensor.WithShape(1, 1, 1, 1), tensor.WithBacking([]float64{2})))
	body, err := convolve(x, weight, 1, 0, 1)
	must(t, err)
	G.Must(G.Sum(G.Must(G.Add(body, x))))
	must(t, G.NewLispMachine(graph).RunAll())
	found, err := x.Grad()
	must(t, err)
	if !slices.Equal(numbers(found), []float64{2, 2, 2, 2}) {
		t.Errorf("the lisp machine's gradient is %v: expected the wrong 2, without the shortcut's 1", found)
	}
	right := slope(t, counted(1, 1, 2, 2), func(x *G.Node) (*G.Node, error) {
		weight := variable(x.Graph(), "w", tensor.New(tensor.WithShape(1, 1, 1, 1), tensor.WithBacking([]float64{2})))
		return G.Add(G.Must(convolve(x, weight, 1, 0, 1)), x)
	})
	if !slices.Equal(right, []float64{3, 3, 3, 3}) {
		t.Errorf("the tape machine's gradient is %v, not 3", right)
	}
}

func TestSumOverTwoAxesIsWrong(t *testing.T) {
	// 0 + ... + 8 = 36 and 9 + ... + 17 = 117.
	sums, err := tensor.Sum(counted(1, 2, 3, 3), 2, 3)
	must(t, err)
	if got := sums.Data().([]float64); slices.Equal(got, []float64{36, 117}) {
		t.Errorf("sums %v are right", got)
	}
	whole, err := tensor.Sum(counted(1, 1, 3, 3), 2, 3)
	must(t, err)
	if got := whole.Data().([]float64); !slices.Equal(got, []float64{36}) {
		t.Errorf("even the sum of one image is %v", got)
	}
}

func TestAveragePoolIsWrong(t *testing.T) {
	// The mean of 0, 1, 2, 3 is 1.5 and its gradient 1/4 each: Gorgonia divides by the window's width
	// only, and sends the gradient to one place.
	graph := G.NewGraph()
	x := variable(graph, "x", counted(1, 1, 2, 2))
	y := G.Must(G.AveragePool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	slopes, err := G.Grad(G.Must(G.Sum(y)), x)
	must(t, err)
	var mean G.Value
	G.Read(y, &mean)
	must(t, G.NewTapeMachine(graph).RunAll())
	if got := numbers(mean); got[0] != 3 {
		t.Errorf("the mean is %v: expected the wrong 3", got)
	}
	if got := numbers(slopes[0].Value()); !slices.Equal(got, []float64{0.5, 0, 0, 0}) {
		t.Errorf("its gradient is %v: expected the wrong 0.5, 0, 0, 0", got)
	}
}

func TestGlobalAveragePoolHasNoDerivative(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("G.Grad through GlobalAveragePool2D did not panic")
		}
	}()
	graph := G.NewGraph()
	x := variable(graph, "x", counted(1, 1, 2, 2))
	_, err := G.Grad(G.Must(G.Sum(G.Must(G.GlobalAveragePool2D(x)))), x)
	t.Errorf("G.Grad returned, with error %v", err)
}

func TestRectifyHasSlopeOneAtZero(t *testing.T) {
	values := tensor.New(tensor.WithShape(1, 3), tensor.WithBacking([]float64{-1, 0, 1}))
	if got := slope(t, values, G.Rectify); !slices.Equal(got, []float64{0, 1, 1}) {
		t.Errorf("Rectify's gradient at -1, 0, 1 is %v", got)
	}
	if got := slope(t, values, relu[float64]); !slices.Equal(got, []float64{0, 0, 1}) {
		t.Errorf("relu's gradient at -1, 0, 1 is %v", got)
	}
}

func TestBatchNormDividesByZeroAndForgetsItsStatistics(t *testing.T) {
	normed := func(shape ...int) (*G.ExprGraph, *G.BatchNormOp) {
		graph := G.NewGraph()
		ones := tensor.Ones(tensor.Float64, 1, shape[1], 1, 1)
		_, _, _, op, err := G.BatchNorm(variable(graph, "x", counted(shape...)), variable(graph, "scale", ones),
			variable(graph, "bias", ones.Clone().(*tensor.Dense)), 0.1, 1e-5)
		must(t, err)
		must(t, G.NewTapeMachine(graph).RunAll())
		return graph, op
	}
	// One sample of one pixel, as at the end of a deep net.
	_, op := normed(1, 2, 1, 1)
	if _, variance := op.Stats(); !math.IsNaN(numbers(variance)[0]) {
		t.Errorf("the running variance after one number is %v, not NaN", variance)
	}
	graph, op := normed(2, 1, 2, 2)
	mean, _ := op.Stats()
	if got := numbers(mean)[0]; math.Abs(got-0.1*3.5) > 1e-12 {
		t.Errorf("the running mean is %v, not 0.35", got)
	}
	G.NewTapeMachine(graph)
	if got := numbers(mean)[0]; got != 0 {
		t.Errorf("a second machine leaves the running mean at %v: expected the wrong 0", got)
	}
}

func TestTapeMachineDropsItsMemoryBetweenRuns(t *testing.T) {
	// Reset is the only way to a second run, and forgets all registers. Operators of this package keep theirs.
	addresses := func(layer func(x *G.Node) (*G.Node, error)) (first, second uintptr) {
		graph := G.NewGraph()
		y := G.Must(layer(variable(graph, "x", counted(1, 1, 64, 64))))
		tape := G.NewTapeMachine(graph)
		must(t, tape.RunAll())
		held := y.Value()
		tape.Reset()
		must(t, tape.RunAll())
		return held.Uintptr(), y.Value().Uintptr()
	}
	if first, second := addresses(G.Sigmoid); first == second {
		t.Error("Gorgonia's operator wrote into the same memory twice")
	}
	if first, second := addresses(relu[float64]); first != second {
		t.Error("an operator of this package took new memory")
	}
}

func TestMaxPoolOfNaNEndsTheProgram(t *testing.T) {
	pooled := func(layer func(x *G.Node) (*G.Node, error)) []float64 {
		nothing := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		return slope(t, tensor.New(tensor.WithShape(1, 1, 2, 2), tensor.WithBacking(nothing)), layer)
	}
	if os.Getenv("GORGONIA_POOLS_NAN") != "" {
		pooled(func(x *G.Node) (*G.Node, error) {
			return G.MaxPool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
		})
		return
	}
	// The panic is in a goroutine of the machine: nobody can recover it.
	program := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	program.Env = append(os.Environ(), "GORGONIA_POOLS_NAN=1")
	said, err := program.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "index out of range [-1]") {
		t.Errorf("a pool of NaN by Gorgonia ended with %v and said %s", err, said)
	}
	ours := pooled(func(x *G.Node) (*G.Node, error) { return maxPool[float64](x, 2, 2, 0) })
	if !slices.Equal(ours, []float64{1, 0, 0, 0}) {
		t.Errorf("the gradient of NaN is %v: expected it at the first one, as numpy has it", ours)
	}
}

func TestEqualNodesAreComputedOnce(t *testing.T) {
	// Gorgonia knows an operator by its hash. Two batch norms of one input, with statistics of their own,
	// are one to it; two of this package's are two.
	graph := G.NewGraph()
	x := variable(graph, "x", counted(2, 1, 2, 2))
	scale := variable(graph, "scale", tensor.Ones(tensor.Float64, 1, 1, 1, 1))
	bias := variable(graph, "bias", tensor.Ones(tensor.Float64, 1, 1, 1, 1))
	var ops []*G.BatchNormOp
	for range 2 {
		_, _, _, op, err := G.BatchNorm(x, scale, bias, 0.1, 1e-5)
		must(t, err)
		ops = append(ops, op)
	}
	must(t, G.NewTapeMachine(graph).RunAll())
	moved := 0
	for _, op := range ops {
		if mean, _ := op.Stats(); numbers(mean)[0] != 0 {
			moved++
		}
	}
	own := G.NewGraph()
	x, scale, bias = variable(own, "x", counted(2, 1, 2, 2)), variable(own, "scale", counted(1)), variable(own, "bias", counted(1))
	means := [][]float64{{0}, {0}}
	for i := range means {
		G.Must(batchNorm(x, scale, bias, means[i], []float64{1}, 0.1, 1e-5, true))
	}
	must(t, G.NewTapeMachine(own).RunAll())
	if got := fmt.Sprint(moved, means); got != "1 [[0.35000000000000003] [0.35000000000000003]]" {
		t.Errorf("batch norms of Gorgonia's that moved, and running means of ours: %s", got)
	}
}
