package rules

import (
	"math"
	"testing"

	"transect-trainer-go/number"
	"transect-trainer-go/plan"
)

// Two steps of each rule on one weight, by hand from the rules' definitions.
func TestRulesAreThoseOfTheirDefinitions(t *testing.T) {
	const rate, decay, momentum, g1, g2, w0 = 0.1, 0.01, 0.9, 0.5, -0.25, 2.0
	sgd := func() float64 {
		v := g1 + decay*w0
		w := w0 - rate*v
		v = momentum*v + g2 + decay*w
		return w - rate*v
	}
	nesterov := func() float64 {
		g := g1 + decay*w0
		v := g
		w := w0 - rate*(g+momentum*v)
		g = g2 + decay*w
		v = momentum*v + g
		return w - rate*(g+momentum*v)
	}
	adamw := func() float64 {
		m, v, w := 0.0, 0.0, w0
		for t, g := range []float64{g1, g2} {
			w -= rate * decay * w
			m, v = 0.9*m+0.1*g, 0.99*v+0.01*g*g
			n := float64(t + 1)
			w -= rate * (m / (1 - math.Pow(0.9, n))) / (math.Sqrt(v/(1-math.Pow(0.99, n))) + 1e-8)
		}
		return w
	}
	for name, wanted := range map[string]float64{"sgd": sgd(), "nesterov": nesterov(), "adamw": adamw()} {
		rule, err := New[float64](plan.Rule{
			Optimiser: name, Momentum: momentum, WeightDecay: decay, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8,
		}, 1, number.NewTeam(1))
		if err != nil {
			t.Fatal(err)
		}
		w := []float64{w0}
		rule.Update(w, []float64{g1}, rate)
		rule.Update(w, []float64{g2}, rate)
		if math.Abs(w[0]-wanted) > 1e-14 {
			t.Errorf("%s: %g, expected %g", name, w[0], wanted)
		}
	}
	if _, err := New[float64](plan.Rule{Optimiser: "lion"}, 1, number.NewTeam(1)); err == nil {
		t.Error("a rule that is not there was made")
	}
}
