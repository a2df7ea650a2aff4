//! The prepared deck: docs/docking.md.

use std::fs;

const MAGIC: &[u8] = b"TDECK 1\n";
pub const ROW: usize = 8;
pub const POSE_ROWS: usize = 6;

/// Arrays are by axis: `ligand` is 3 x atoms, `poses` is 6 x count.
pub struct Deck {
    pub atoms: usize,
    pub others: usize,
    pub kinds: usize,
    pub count: usize,
    pub ligand: Vec<f32>,
    pub ligand_kinds: Vec<usize>,
    pub protein: Vec<f32>,
    pub protein_kinds: Vec<usize>,
    pub table: Vec<f32>,
    pub poses: Vec<f32>,
}

struct Words<'a> {
    rest: &'a [u8],
    path: &'a str,
}

impl Words<'_> {
    fn take(&mut self, count: usize) -> Result<Vec<[u8; 4]>, String> {
        if self.rest.len() < count * 4 {
            return Err(format!("{} ends early: expected {count} more numbers", self.path));
        }
        let (now, rest) = self.rest.split_at(count * 4);
        self.rest = rest;
        Ok(now.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]).collect())
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, String> {
        Ok(self.take(count)?.into_iter().map(f32::from_le_bytes).collect())
    }

    fn below(&mut self, count: usize, limit: usize) -> Result<Vec<usize>, String> {
        let found: Vec<usize> = self.take(count)?.into_iter().map(|four| u32::from_le_bytes(four) as usize).collect();
        match found.iter().find(|kind| **kind >= limit) {
            Some(kind) => Err(format!("{}: an atom of kind {kind}, there are {limit}", self.path)),
            None => Ok(found),
        }
    }
}

pub fn read(path: &str) -> Result<Deck, String> {
    let content = fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
    let rest = content
        .strip_prefix(MAGIC)
        .ok_or_else(|| format!("{path} is no prepared deck: expected it to begin with 'TDECK 1'"))?;
    let mut words = Words { rest, path };
    let counts: Vec<usize> = words.take(4)?.into_iter().map(|four| i32::from_le_bytes(four).max(0) as usize).collect();
    if counts.contains(&0) {
        return Err(format!("{path}: expected four counts from 1 on, found {counts:?}"));
    }
    let (atoms, others, kinds, count) = (counts[0], counts[1], counts[2], counts[3]);
    let deck = Deck {
        atoms,
        others,
        kinds,
        count,
        ligand: words.floats(3 * atoms)?,
        ligand_kinds: words.below(atoms, kinds)?,
        protein: words.floats(3 * others)?,
        protein_kinds: words.below(others, kinds)?,
        table: words.floats(kinds * kinds * ROW)?,
        poses: words.floats(POSE_ROWS * count)?,
    };
    if !words.rest.is_empty() {
        return Err(format!("{path} goes on after its last pose"));
    }
    Ok(deck)
}
