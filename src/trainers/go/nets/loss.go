package nets

import (
	"math"

	"transect-trainer-go/fault"
	"transect-trainer-go/trainer"
)

// lossOf returns the function that writes the gradient of a batch's mean loss with respect to the outputs
// (n, classes) over a buffer, and returns the loss.
func lossOf[T trainer.Number](name string) func(outputs []T, labels []int64, gradient []T) float64 {
	switch name {
	case "mse":
		return halfSquares[T]
	case "cross-entropy":
		return crossEntropy[T]
	}
	panic(fault.Bad("loss %q is neither mse nor cross-entropy", name))
}

// halfSquares is half the squared distance to the one-hot target, summed over classes.
func halfSquares[T trainer.Number](outputs []T, labels []int64, gradient []T) float64 {
	n := len(labels)
	classes := len(outputs) / n
	squares := 0.0
	for i, label := range labels {
		row, own := outputs[i*classes:(i+1)*classes], gradient[i*classes:(i+1)*classes]
		for j, value := range row {
			if j == int(label) {
				value--
			}
			squares += float64(value) * float64(value)
			own[j] = value / T(n)
		}
	}
	return 0.5 * squares / float64(n)
}

// crossEntropy is that of the softmax of the outputs; the maximum is subtracted first.
func crossEntropy[T trainer.Number](outputs []T, labels []int64, gradient []T) float64 {
	n := len(labels)
	classes := len(outputs) / n
	loss := 0.0
	for i, label := range labels {
		row, own := outputs[i*classes:(i+1)*classes], gradient[i*classes:(i+1)*classes]
		highest := row[0]
		for _, value := range row {
			highest = max(highest, value)
		}
		var all T
		for j, value := range row {
			power := T(math.Exp(float64(value - highest)))
			own[j] = power
			all += power
		}
		loss += math.Log(float64(all)) - float64(row[label]-highest)
		for j := range own {
			own[j] /= all
		}
		own[label]--
		for j := range own {
			own[j] /= T(n)
		}
	}
	return loss / float64(n)
}
