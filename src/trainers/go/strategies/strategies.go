// Package strategies has how ranks work together: one file each, registered by name.
package strategies

import (
	"slices"

	"transect-trainer-go/fault"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// Place is where a rank stands.
type Place struct{ Rank, Size int }

// Times of one step in seconds, NaN where it cannot be told, and its mean loss on this rank.
type Times struct{ Loss, Compute, Communication, UnderWay float64 }

// Strategy keeps the ranks' models equal. The docstrings of training/strategies/__init__.py hold here too.
type Strategy[T trainer.Number] interface {
	// Join meets the other ranks; called once, before the model is built.
	Join() (Place, error)
	// Start gives every rank the weights of rank 0; called once, before the first step.
	Start(t trainer.Trainer[T]) error
	// Step does one step.
	Step(t trainer.Trainer[T], b trainer.Batch[T], rate float64) (Times, error)
	// Trains is false for a rank that gets no batches: its Step is called with an empty one.
	Trains() bool
	// Barrier waits for all ranks.
	Barrier() error
	// Leave is called once, after a barrier.
	Leave() error
	// Libraries are the versions of what communicates.
	Libraries() map[string]string
}

// Sharer is a strategy that deals out batches otherwise than rank by rank.
type Sharer interface {
	// Share returns which of how many equal parts of a batch is this rank's; called after Join.
	Share() (number, count int)
}

// Aborter is a strategy whose other ranks wait for one that fails, unless it ends them.
type Aborter interface{ Abort() }

// Loose is a strategy whose ranks do not wait for one another at the end of an epoch.
type Loose interface{ EndEpoch() error }

// Finisher is a strategy that has something left to do after the last step, before weights are asked for.
type Finisher[T trainer.Number] interface {
	Finish(t trainer.Trainer[T]) error
}

// Dealer is a strategy whose ranks come and go where the plan has Workers, and then compute several parts of a step's
// batch, or none.
type Dealer[T trainer.Number] interface {
	// Deal does a step by `parts`; `next` returns the batch of one after another, each until the next is asked for.
	Deal(t trainer.Trainer[T], step int, parts []int, next func() trainer.Batch[T], rate float64) (Times, error)
}

// Sampler is a strategy with raw samples of its own, by the name of their metric; rank 0's are kept.
type Sampler interface{ Series() map[string][]float64 }

// Detailed is a strategy that has something to say of how it worked: JSON for the record.
type Detailed interface{ Details() map[string]any }

var makers = map[string]any{}

type maker[T trainer.Number] = func(p *plan.Plan) (Strategy[T], error)

// Register adds a strategy by its name; both makers are the same function for either precision.
func Register(name string, in32 maker[float32], in64 maker[float64]) {
	if _, there := makers[name]; there {
		panic("strategy " + name + " is registered twice")
	}
	makers[name] = [2]any{in32, in64}
}

// Names are all that this program was built with, sorted.
func Names() []string {
	names := []string{}
	for name := range makers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Of makes the plan's strategy.
func Of[T trainer.Number](p *plan.Plan) (Strategy[T], error) {
	both, known := makers[p.Cell.Strategy].([2]any)
	if !known {
		return nil, fault.Bad("strategy %q is none of %v, which this program was built with", p.Cell.Strategy, Names())
	}
	for _, one := range both {
		if make, ok := one.(maker[T]); ok {
			return make(p)
		}
	}
	return nil, fault.New(fault.Crash, "strategy %q has no maker for this precision", p.Cell.Strategy)
}
