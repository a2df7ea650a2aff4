// Package plan reads what a rank is told: the plan of docs/trainer-contract.md and its arrays.
package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"transect-trainer-go/fault"
)

// Format is the number of the plan's format that this program reads.
const Format = 1

// Plan is the file itself; docs/trainer-contract.md says what each key means.
type Plan struct {
	Format        int         `json:"format"`
	Out           string      `json:"out"`
	Cell          Cell        `json:"cell"`
	Rule          Rule        `json:"parameters"`
	Replicas      int         `json:"replicas"`
	ModelParts    int         `json:"model_parts"`
	Servers       int         `json:"servers"`
	Workers       []int       `json:"workers"`
	StepsPerEpoch int         `json:"steps_per_epoch"`
	Steps         int         `json:"steps"`
	CheckedSteps  int         `json:"checked_steps"`
	Model         Model       `json:"model"`
	Weights       []Weight    `json:"weights"`
	Order         *Array      `json:"order"`
	Rates         *Array      `json:"learning_rates"`
	Data          Data        `json:"data"`
	Restarts      []Restarted `json:"restarts"`
	// Every option of the strategy with its value: a number or a text.
	Options map[string]any `json:"options"`
}

// Cell has the axes that a trainer asks for.
type Cell struct {
	Workload     string `json:"workload"`
	Framework    string `json:"framework"`
	Strategy     string `json:"strategy"`
	Batch        int    `json:"batch"`
	Precision    string `json:"precision"`
	Device       string `json:"device"`
	Threads      int    `json:"threads"`
	Nodes        int    `json:"nodes"`
	RanksPerNode int    `json:"ranks_per_node"`
	Reduce       string `json:"reduce"`
	Input        string `json:"input"`
}

// There is how many workers are there in a step: the first ones by their rank. Without Workers all always are.
func (p *Plan) There(step int) int {
	if len(p.Workers) == 0 {
		return p.Replicas
	}
	return p.Workers[step*len(p.Workers)/p.Steps]
}

// Parts are those of a step's batch that a rank computes; none where it is a server, or is not there.
func (p *Plan) Parts(rank, step int) []int {
	var parts []int
	worker, there := rank-p.Servers, p.There(step)
	if worker >= 0 && worker < there {
		for part := worker; part < p.Replicas; part += there {
			parts = append(parts, part)
		}
	}
	return parts
}

// Ranks is the number of processes.
func (c Cell) Ranks() int { return c.Nodes * c.RanksPerNode }

// Rule holds the hyper-parameters.
type Rule struct {
	Optimiser   string  `json:"optimiser"`
	Momentum    float64 `json:"momentum"`
	WeightDecay float64 `json:"weight_decay"`
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Epsilon     float64 `json:"epsilon"`
	Loss        string  `json:"loss"`
}

// Model is what is computed.
type Model struct {
	Kind   string  `json:"kind"`
	Sample []int   `json:"sample"`
	Inputs string  `json:"inputs"`
	Score  string  `json:"score"`
	Layers []Layer `json:"layers"`
}

// Layer is one of training/layers.py: Kind, and the fields of that kind.
type Layer struct {
	Kind     string    `json:"kind"`
	Inputs   int       `json:"inputs"`
	Outputs  int       `json:"outputs"`
	Kernel   int       `json:"kernel"`
	Padding  int       `json:"padding"`
	Stride   int       `json:"stride"`
	Bias     bool      `json:"bias"`
	Groups   int       `json:"groups"`
	Channels int       `json:"channels"`
	Features int       `json:"features"`
	Momentum float64   `json:"momentum"`
	Epsilon  float64   `json:"epsilon"`
	Size     int       `json:"size"`
	Body     []Layer   `json:"body"`
	Shortcut []Layer   `json:"shortcut"`
	Branches [][]Layer `json:"branches"`
}

// Weight is an array of the model with its initial values.
type Weight struct {
	Name    string `json:"name"`
	Trained bool   `json:"trained"`
	Array
}

// Data are the arrays of the data stage.
type Data struct {
	XTrain     *Array `json:"x_train"`
	YTrain     *Array `json:"y_train"`
	XTest      *Array `json:"x_test"`
	YTest      *Array `json:"y_test"`
	Mean       *Array `json:"mean"`
	Deviation  *Array `json:"deviation"`
	XSynthetic *Array `json:"x_synthetic"`
	YSynthetic *Array `json:"y_synthetic"`
}

// Restarted is a state of the reference from which `Steps` steps are to be taken. Without weights it is
// the training's own start; a name that a state lacks stands for zeros.
type Restarted struct {
	First   int                 `json:"first"`
	Steps   int                 `json:"steps"`
	Weights map[string]*Array   `json:"weights"`
	States  []map[string]*Array `json:"states"`
}

// Read returns the plan, checked as far as any trainer depends on it. Where the error is a fault of the
// plan's content, the plan is returned too, if `out` could be read: there the fault belongs.
func Read(path string) (*Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Bad("the plan cannot be read: %v", err)
	}
	var head struct {
		Format *int   `json:"format"`
		Out    string `json:"out"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fault.Bad("%s is no plan: %v", path, err)
	}
	read := &Plan{Out: head.Out}
	if head.Out == "" {
		return nil, fault.Bad("%s: it says nothing of `out`", path)
	}
	if head.Format == nil || *head.Format != Format {
		return read, fault.Bad("%s: this program reads format %d of the plan, not %s", path, Format, told(head.Format))
	}
	if err := json.Unmarshal(text, read); err != nil {
		return &Plan{Out: head.Out}, fault.Bad("%s: %v", path, err)
	}
	return read, read.check(path)
}

func told(format *int) string {
	if format == nil {
		return "one that says no number"
	}
	text, _ := json.Marshal(*format)
	return string(text)
}

func (p *Plan) check(path string) error {
	switch {
	case p.Order == nil || p.Rates == nil:
		return fault.Bad("%s: it has no order or no learning_rates", path)
	case len(p.Order.Shape) != 2 || p.Order.Shape[0] < 1:
		return fault.Bad("%s: order has shape %v, expected (epochs, samples)", path, p.Order.Shape)
	case p.Cell.Batch < 1 || p.Replicas < 1 || p.ModelParts < 1 || p.Cell.Batch%p.Replicas != 0:
		return fault.Bad("%s: a batch of %d cannot be cut in %d equal parts", path, p.Cell.Batch, p.Replicas)
	case p.StepsPerEpoch < 1 || p.StepsPerEpoch*p.Cell.Batch > p.Order.Shape[1]:
		return fault.Bad("%s: %d steps of %d samples do not fit %d samples", path, p.StepsPerEpoch, p.Cell.Batch,
			p.Order.Shape[1])
	case p.Steps != p.Epochs()*p.StepsPerEpoch || !slices.Equal(p.Rates.Shape, []int{p.Steps}):
		return fault.Bad("%s: %d epochs of %d steps, %d steps in all and learning_rates %v do not fit", path,
			p.Epochs(), p.StepsPerEpoch, p.Steps, p.Rates.Shape)
	case p.Cell.Threads < 1:
		return fault.Bad("%s: %d threads", path, p.Cell.Threads)
	}
	required := map[string]*Array{"x_train": p.Data.XTrain, "y_train": p.Data.YTrain, "x_test": p.Data.XTest, "y_test": p.Data.YTest}
	if p.Cell.Input == "synthetic" {
		required = map[string]*Array{"x_synthetic": p.Data.XSynthetic, "y_synthetic": p.Data.YSynthetic}
	}
	for name, array := range required {
		if array == nil {
			return fault.Bad("%s: its data has no %s", path, name)
		}
	}
	p.place()
	return nil
}

// place makes relative files those of the folder that is written to.
func (p *Plan) place() {
	arrays := []*Array{p.Order, p.Rates, p.Data.XTrain, p.Data.YTrain, p.Data.XTest, p.Data.YTest,
		p.Data.Mean, p.Data.Deviation, p.Data.XSynthetic, p.Data.YSynthetic}
	for i := range p.Weights {
		arrays = append(arrays, &p.Weights[i].Array)
	}
	for _, restart := range p.Restarts {
		for _, group := range append([]map[string]*Array{restart.Weights}, restart.States...) {
			for _, array := range group {
				arrays = append(arrays, array)
			}
		}
	}
	for _, array := range arrays {
		if array != nil && !filepath.IsAbs(array.File) {
			array.File = filepath.Join(p.Out, array.File)
		}
	}
}

// Epochs is how often the samples are gone through.
func (p *Plan) Epochs() int { return p.Order.Shape[0] }

// LocalBatch is the number of samples of a rank's part of a batch.
func (p *Plan) LocalBatch() int { return p.Cell.Batch / p.Replicas }
