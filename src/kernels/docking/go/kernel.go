package main

import "math"

const steric = 76

// item holds what one work-item needs for its poses; a goroutine keeps one and uses it again.
type item struct {
	turns         [9][]float32
	shifts        [3][]float32
	x, y, z, sums []float32
}

func newItem(perItem int) *item {
	made := &item{}
	for i := range made.turns {
		made.turns[i] = make([]float32, perItem)
	}
	for i := range made.shifts {
		made.shifts[i] = make([]float32, perItem)
	}
	made.x, made.y = make([]float32, perItem), make([]float32, perItem)
	made.z, made.sums = make([]float32, perItem), make([]float32, perItem)
	return made
}

func (m *item) turn(d *deck, first, size int) {
	for i := range size {
		at := func(row int) float64 { return float64(d.poses[row*d.count+first+i]) }
		sx, cx := math.Sincos(at(0))
		sy, cy := math.Sincos(at(1))
		sz, cz := math.Sincos(at(2))
		for k, value := range [9]float64{
			cy * cz, sx*sy*cz - cx*sz, cx*sy*cz + sx*sz,
			cy * sz, sx*sy*sz + cx*cz, cx*sy*sz - sx*cz,
			-sy, sx * cy, cx * cy,
		} {
			m.turns[k][i] = float32(value)
		}
		for axis := range m.shifts {
			m.shifts[axis][i] = d.poses[(3+axis)*d.count+first+i]
		}
		m.sums[i] = 0
	}
}

// run fills energies, those of the poses from first on. Go has no vectors: each pose is a scalar.
func (m *item) run(d *deck, first int, energies []float32) {
	size := len(energies)
	m.turn(d, first, size)
	x, y, z, sums := m.x[:size], m.y[:size], m.z[:size], m.sums[:size]
	for atom := range d.atoms {
		u, v, w := d.ligand[atom], d.ligand[d.atoms+atom], d.ligand[2*d.atoms+atom]
		for i := range size {
			x[i] = m.shifts[0][i] + m.turns[0][i]*u + m.turns[1][i]*v + m.turns[2][i]*w
			y[i] = m.shifts[1][i] + m.turns[3][i]*u + m.turns[4][i]*v + m.turns[5][i]*w
			z[i] = m.shifts[2][i] + m.turns[6][i]*u + m.turns[7][i]*v + m.turns[8][i]*w
		}
		rows := d.table[int(d.ligandKinds[atom])*d.kinds*row:][:d.kinds*row]
		for other, kind := range d.proteinKinds {
			px, py, pz := d.protein[other], d.protein[d.others+other], d.protein[2*d.others+other]
			c := (*[row]float32)(rows[int(kind)*row:])
			perRadii, charge, chargeTop, chargeSlope := c[0], c[1], c[2], c[3]
			solvation, solvationTop, solvationSlope := c[4], c[5], c[6]
			for i := range sums {
				dx, dy, dz := x[i]-px, y[i]-py, z[i]-pz
				distance := float32(math.Sqrt(float64(dx*dx + dy*dy + dz*dz)))
				sum := sums[i]
				// Beyond its reach a term is nothing: most pairs of a protein lie there.
				if near := 1 - distance*perRadii; near > 0 {
					sum += steric * near
				}
				if near := chargeTop - distance*chargeSlope; near > 0 {
					sum += charge * min(1, near)
				}
				if near := solvationTop - distance*solvationSlope; near > 0 {
					sum += solvation * min(1, near)
				}
				sums[i] = sum
			}
		}
	}
	for i, sum := range sums {
		energies[i] = 0.5 * sum
	}
}
