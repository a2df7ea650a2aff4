package loop

import "transect-trainer-go/number"

// testSamples are predicted at once.
const testSamples = 512

// score counts the test samples whose largest output is that of their class.
func (r *rank[T]) score() (float64, error) {
	right := 0.0
	if r.test == nil {
		return right, nil
	}
	some := number.Buffer[T]{}
	for first := 0; first < len(r.answers); first += testSamples {
		n := min(testSamples, len(r.answers)-first)
		x := r.test.stored
		if r.test.bytes != nil {
			x = some.Of(n * r.test.size)
			for i := range n {
				r.test.write(x[i*r.test.size:(i+1)*r.test.size], int64(first+i))
			}
		} else {
			x = x[first*r.test.size : (first+n)*r.test.size]
		}
		outputs, err := r.trainer.Predict(x, n)
		if err != nil {
			return 0, err
		}
		classes := len(outputs) / n
		for i, answer := range r.answers[first : first+n] {
			if number.Largest(outputs[i*classes:(i+1)*classes]) == int(answer) {
				right++
			}
		}
	}
	number.Free(some.Of(0))
	return right, nil
}
