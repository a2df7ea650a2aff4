package loop

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"transect-trainer-go/nets"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// written puts numbers in a file of the folder and says where they are.
func written(t *testing.T, folder, name, dtype string, shape []int, numbers any) map[string]any {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := binary.Write(file, binary.LittleEndian, numbers); err != nil {
		t.Fatal(err)
	}
	// A relative file is in the folder that is written to.
	return map[string]any{"dtype": dtype, "shape": shape, "file": name, "offset": 0}
}

// small is the plan of a linear layer on four samples, two epochs of two steps.
func small(t *testing.T) (folder string, told map[string]any) {
	folder = t.TempDir()
	x := []float64{1, 0, 0, 1, 1, 1, -1, 0}
	return folder, map[string]any{
		"format": 1, "out": folder, "replicas": 1, "model_parts": 1, "steps_per_epoch": 2, "steps": 4, "checked_steps": 4,
		"cell": map[string]any{
			"strategy": "single", "batch": 2, "precision": "fp32", "device": "cpu", "threads": 1, "nodes": 1,
			"ranks_per_node": 1, "reduce": "mean", "input": "stored",
		},
		"parameters": map[string]any{"optimiser": "sgd", "loss": "mse"},
		"model": map[string]any{
			"kind": "LayeredModel", "sample": []int{2}, "inputs": "float", "score": "accuracy",
			"layers": []any{map[string]any{"kind": "Linear", "inputs": 2, "outputs": 2}},
		},
		"weights": []any{
			merged(map[string]any{"name": "0.weight", "trained": true}, written(t, folder, "w", "float64", []int{2, 2}, []float64{1, 0, 0, 1})),
			merged(map[string]any{"name": "0.bias", "trained": true}, written(t, folder, "b", "float64", []int{2}, []float64{0, 0})),
		},
		"order":          written(t, folder, "order", "int64", []int{2, 4}, []int64{0, 1, 2, 3, 3, 2, 1, 0}),
		"learning_rates": written(t, folder, "rates", "float64", []int{4}, []float64{.1, .1, .1, .1}),
		"data": map[string]any{
			"x_train": written(t, folder, "x", "float64", []int{4, 2}, x), "y_train": written(t, folder, "y", "int64", []int{4}, []int64{0, 1, 0, 1}),
			"x_test": written(t, folder, "xt", "float64", []int{4, 2}, x), "y_test": written(t, folder, "yt", "int64", []int{4}, []int64{0, 1, 0, 1}),
		},
	}
}

func merged(one, other map[string]any) map[string]any {
	for key, value := range other {
		one[key] = value
	}
	return one
}

// end runs a program on a plan; it returns the exit code and what the rank wrote.
func end(t *testing.T, folder string, told map[string]any, program Program) (int, map[string]any) {
	t.Helper()
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "plan.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	kept := os.Args
	defer func() { os.Args = kept }()
	os.Args = []string{"program", path}
	code := Main(program)
	name := "rank-000.json"
	if code != 0 {
		name = "rank-000.error.json"
	}
	found, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]any{}
	if err := json.Unmarshal(found, &facts); err != nil {
		t.Fatal(err)
	}
	return code, facts
}

var own = Program{Float32: nets.New[float32], Float64: nets.New[float64], Libraries: func() map[string]string { return nil }}

func TestARankLeavesWhatTheContractAsksFor(t *testing.T) {
	folder, told := small(t)
	code, facts := end(t, folder, told, own)
	if code != 0 {
		t.Fatal(facts)
	}
	groups := facts["arrays"].(map[string]any)
	for group, names := range map[string]string{
		"series": "loss step compute communication under_way input epoch_end evaluation score_sum", "weights": "0.weight 0.bias", "checked": "0.weight 0.bias",
	} {
		for _, name := range strings.Fields(names) {
			if groups[group].(map[string]any)[name] == nil {
				t.Errorf("%s has no %s", group, name)
			}
		}
	}
	if facts["peak_memory_bytes"].(float64) < 1<<20 {
		t.Error("a process holds more than that:", facts["peak_memory_bytes"])
	}
}

func TestAPanicIsARecord(t *testing.T) {
	folder, told := small(t)
	program := own
	program.Float32 = func(p *plan.Plan) (trainer.Trainer[float32], error) {
		return nil, []error{}[p.Steps]
	}
	code, facts := end(t, folder, told, program)
	if code != 1 || facts["cause"] != "crash" || !strings.Contains(facts["message"].(string), "index out of range") {
		t.Errorf("exit code %d, %v", code, facts)
	}
}

func TestAPrecisionThatItHasNotIsRefused(t *testing.T) {
	folder, told := small(t)
	told["cell"].(map[string]any)["precision"] = "fp16"
	code, facts := end(t, folder, told, own)
	if code != 1 || facts["cause"] != "bad-input" || !strings.Contains(facts["message"].(string), "fp16") {
		t.Errorf("exit code %d, %v", code, facts)
	}
}

// A batch is this rank's part, and is the same ahead and on the spot.
func TestBatchesPreparedAheadAreThoseMadeOnTheSpot(t *testing.T) {
	folder, told := small(t)
	text, _ := json.Marshal(told)
	path := filepath.Join(folder, "plan.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for share := range 2 {
		s, err := newSource[float64](p, func(int) []int { return []int{share} }, 2)
		if err != nil {
			t.Fatal(err)
		}
		batches := newAhead(s, p.Steps)
		for step, which := range [][2]int64{{0, 1}, {2, 3}, {3, 2}, {1, 0}} {
			got, wanted := batches.next(), s.one(step, share)
			if got.N != 1 || got.X[0] != wanted.X[0] || got.X[1] != wanted.X[1] || got.Labels[0] != which[share]%2 {
				t.Errorf("step %d, part %d: %v, expected %v of sample %d", step, share, got, wanted, which[share])
			}
		}
	}
}
