//! A work-item of P poses: loops of constant length over arrays, which the compiler turns into vectors.

use crate::deck::{Deck, ROW};

const STERIC: f32 = 76.0;

// Rust fuses nothing by itself; without the instruction a call of the library would take its place.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

// Not f32::max and min: they take care of numbers that are none, and a deck holds no such.
#[inline(always)]
fn from_zero(value: f32) -> f32 {
    if value > 0.0 {
        value
    } else {
        0.0
    }
}

#[inline(always)]
fn to_one(value: f32) -> f32 {
    if value < 1.0 {
        value
    } else {
        1.0
    }
}

/// Fill `energies`, those of the poses from `first` on, P at most.
pub fn item<const P: usize>(deck: &Deck, first: usize, energies: &mut [f32]) {
    let mut turns = [[0f32; P]; 9];
    let mut shifts = [[0f32; P]; 3];
    for i in 0..P {
        // Those past the last pose repeat it.
        let pose = (first + i).min(deck.count - 1);
        let at = |row: usize| deck.poses[row * deck.count + pose];
        let ((sx, cx), (sy, cy), (sz, cz)) = (at(0).sin_cos(), at(1).sin_cos(), at(2).sin_cos());
        let matrix = [
            cy * cz,
            sx * sy * cz - cx * sz,
            cx * sy * cz + sx * sz,
            cy * sz,
            sx * sy * sz + cx * cz,
            cx * sy * sz - sx * cz,
            -sy,
            sx * cy,
            cx * cy,
        ];
        for (row, value) in turns.iter_mut().zip(matrix) {
            row[i] = value;
        }
        for (axis, row) in shifts.iter_mut().enumerate() {
            row[i] = at(3 + axis);
        }
    }
    let (px, rest) = deck.protein.split_at(deck.others);
    let (py, pz) = rest.split_at(deck.others);
    let mut sums = [0f32; P];
    for atom in 0..deck.atoms {
        let place = [deck.ligand[atom], deck.ligand[deck.atoms + atom], deck.ligand[2 * deck.atoms + atom]];
        let mut at = [[0f32; P]; 3];
        for axis in 0..3 {
            for i in 0..P {
                let turned = fused(turns[3 * axis][i], place[0], shifts[axis][i]);
                let turned = fused(turns[3 * axis + 1][i], place[1], turned);
                at[axis][i] = fused(turns[3 * axis + 2][i], place[2], turned);
            }
        }
        let [x, y, z] = at;
        let rows = &deck.table[deck.ligand_kinds[atom] * deck.kinds * ROW..][..deck.kinds * ROW];
        for (((kind, px), py), pz) in deck.protein_kinds.iter().zip(px).zip(py).zip(pz) {
            let c: &[f32; ROW] = rows[kind * ROW..][..ROW].try_into().expect("a row");
            for i in 0..P {
                let (dx, dy, dz) = (x[i] - px, y[i] - py, z[i] - pz);
                let d = fused(dx, dx, fused(dy, dy, dz * dz)).sqrt();
                let sum = fused(STERIC, from_zero(fused(-d, c[0], 1.0)), sums[i]);
                let sum = fused(c[1], to_one(from_zero(fused(-d, c[3], c[2]))), sum);
                sums[i] = fused(c[4], to_one(from_zero(fused(-d, c[6], c[5]))), sum);
            }
        }
    }
    for (energy, sum) in energies.iter_mut().zip(sums) {
        *energy = 0.5 * sum;
    }
}
