// Package rules has the update rules of training/optimisers/*.py, with their roundings.
package rules

import (
	"math"
	"slices"

	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// states are how many numbers a rule keeps for each weight.
var states = map[string]int{"sgd": 1, "nesterov": 1, "adamw": 2}

// Kept is how many numbers a rule keeps for each weight.
func Kept(name string) int { return states[name] }

// Rule changes weights by gradients.
type Rule[T trainer.Number] struct {
	given plan.Rule
	// States of the optimiser, each as long as the weights.
	States [][]T
	// Updates so far.
	Updates int
	team    *number.Team
	// What the parts of an update read.
	weights, gradient []T
	rate              float64
	part              func(part int)
}

// New makes the rule for that many weights. The error says when it is not known.
func New[T trainer.Number](given plan.Rule, weights int, team *number.Team) (*Rule[T], error) {
	kept, known := states[given.Optimiser]
	if !known {
		names := []string{}
		for name := range states {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fault.Bad("optimiser %q is none of %v", given.Optimiser, names)
	}
	rule := &Rule[T]{given: given, team: team}
	for range kept {
		rule.States = append(rule.States, number.Make[T](weights))
	}
	step := map[string]func(first, last int){"sgd": rule.sgd, "nesterov": rule.nesterov, "adamw": rule.adamw}[given.Optimiser]
	rule.part = func(part int) {
		first := part * chunk
		step(first, min(first+chunk, len(rule.weights)))
	}
	return rule, nil
}

const chunk = 1 << 14

// Update changes weights and states in place.
func (r *Rule[T]) Update(weights, gradient []T, rate float64) {
	r.Updates++
	r.weights, r.gradient, r.rate = weights, gradient, rate
	r.team.Run((len(weights)+chunk-1)/chunk, len(weights), r.part)
}

// Conversions of products keep a compiler from fusing them with the additions.

func (r *Rule[T]) sgd(first, last int) {
	w, g, v := r.weights[first:last], r.gradient[first:last], r.States[0][first:last]
	rate, decay, momentum := T(r.rate), T(r.given.WeightDecay), T(r.given.Momentum)
	if decay != 0 {
		for i := range g {
			g[i] += T(decay * w[i])
		}
	}
	if momentum == 0 {
		for i, value := range g {
			w[i] -= T(rate * value)
		}
		return
	}
	for i, value := range g {
		moved := T(momentum*v[i]) + value
		v[i] = moved
		w[i] -= T(rate * moved)
	}
}

func (r *Rule[T]) nesterov(first, last int) {
	w, g, v := r.weights[first:last], r.gradient[first:last], r.States[0][first:last]
	rate, decay, momentum := T(r.rate), T(r.given.WeightDecay), T(r.given.Momentum)
	for i := range g {
		if decay != 0 {
			g[i] += T(decay * w[i])
		}
		value := g[i]
		if momentum != 0 {
			v[i] = T(momentum*v[i]) + value
			value += T(momentum * v[i])
		}
		w[i] -= T(rate * value)
	}
}

func (r *Rule[T]) adamw(first, last int) {
	w, g := r.weights[first:last], r.gradient[first:last]
	m, v := r.States[0][first:last], r.States[1][first:last]
	given, updates := r.given, float64(r.Updates)
	// Corrections are in float64, whatever the arrays are.
	kept := T(1 - r.rate*given.WeightDecay)
	beta1, rest1 := T(given.Beta1), T(1-given.Beta1)
	beta2, rest2 := T(given.Beta2), T(1-given.Beta2)
	second := T(1 - math.Pow(given.Beta2, updates))
	rate, epsilon := T(r.rate/(1-math.Pow(given.Beta1, updates))), T(given.Epsilon)
	for i, value := range g {
		if given.WeightDecay != 0 {
			w[i] *= kept
		}
		m[i] = T(beta1*m[i]) + T(rest1*value)
		v[i] = T(beta2*v[i]) + T(rest2*T(value*value))
		root := T(math.Sqrt(float64(v[i]/second))) + epsilon
		w[i] -= T(T(rate*m[i]) / root)
	}
}
