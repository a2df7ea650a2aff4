package main

import "math"

// areFinite tells whether no number is infinite or none at all; integers never are.
func areFinite(dtype string, memory []byte) bool {
	switch dtype {
	case "float32":
		return haveExponent(view[uint32](memory), 0x7f80_0000)
	case "float64":
		return haveExponent(view[uint64](memory), 0x7ff0_0000_0000_0000)
	case "float16":
		return haveExponent(view[uint16](memory), 0x7c00)
	case "bfloat16":
		return haveExponent(view[uint16](memory), 0x7f80)
	}
	return true
}

// haveExponent tells whether each number has another exponent than the largest, which is that of
// the infinite ones and of those that are none.
func haveExponent[T uint16 | uint32 | uint64](numbers []T, largest T) bool {
	for _, one := range numbers {
		if one&largest == largest {
			return false
		}
	}
	return true
}

// tellable returns JSON's null for what JSON has no number for.
func tellable(series []float64) []any {
	told := make([]any, len(series))
	for i, value := range series {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			told[i] = value
		}
	}
	return told
}
