//! The rows of a batch, gathered into memory that stays where it is.

use ort::memory::Allocator;
use ort::value::DynTensor;

use crate::arguments::Training;
use crate::failure::{Failure, Outcome, bad_input};
use crate::inputs::{Inputs, Piece, View};
use crate::train::manifest::{Axis, Data, Manifest};
use crate::train::tensors;

/// All rows of the data.
pub struct Rows {
    inputs: Inputs,
    /// How many.
    pub count: usize,
}

impl Rows {
    /// Reads them; complains unless they are what the manifest says.
    pub fn read(training: &Training, manifest: &Manifest) -> Outcome<Self> {
        let inputs = Inputs::read(&training.inputs)?;
        let at = training.inputs.join("header.json");
        let at = at.display();
        let given = inputs.whole();
        if let Some(piece) = given
            .iter()
            .find(|piece| manifest.data.iter().all(|data| data.name != piece.name))
        {
            return Err(bad_input!(
                "{at}: tensor '{}' is no data of the step",
                piece.name
            ));
        }
        let mut count = None;
        for data in &manifest.data {
            let piece = find(&given, data)
                .ok_or_else(|| bad_input!("{at}: tensor '{}' is missing", data.name))?;
            data.check(piece, training.batch)
                .map_err(|why| bad_input!("{at}: tensor '{}' {why}", data.name))?;
            let rows = piece.shape[0] as usize;
            if *count.get_or_insert(rows) != rows {
                return Err(bad_input!(
                    "{at}: tensor '{}' has {rows} rows, expected as many in each",
                    data.name
                ));
            }
        }
        drop(given);
        Ok(Rows {
            inputs,
            count: count.unwrap_or(0),
        })
    }
}

fn find<'a, 'b>(given: &'a [Piece<'b>], data: &Data) -> Option<&'a Piece<'b>> {
    given.iter().find(|piece| piece.name == data.name)
}

impl Data {
    /// Says what is wrong with all rows of it, when batches of so many are cut from them.
    fn check(&self, piece: &Piece, batch: usize) -> Result<(), String> {
        let fits = |(axis, size): (&Axis, &i64)| match axis {
            Axis::Size(wanted) => *wanted == *size as u64,
            Axis::Name(_) => true,
        };
        let same = piece.dtype == self.dtype && piece.shape.len() == self.shape.len();
        if !same || !self.shape.iter().zip(&piece.shape).skip(1).all(fits) {
            return Err(format!(
                "is {} of shape {:?}, expected {} of shape {}",
                piece.dtype.name(),
                piece.shape,
                self.dtype.name(),
                self.shape_text()
            ));
        }
        match (self.shape.first(), piece.data) {
            (Some(Axis::Name(_)), View::Numbers(_)) => Ok(()),
            (Some(Axis::Size(size)), View::Numbers(_)) if *size == batch as u64 => Ok(()),
            (Some(Axis::Size(size)), View::Numbers(_)) => Err(format!(
                "is for batches of {size} rows, expected --batch {size}"
            )),
            _ => Err("has no rows of numbers".to_owned()),
        }
    }

    fn shape_text(&self) -> String {
        let axes = self.shape.iter().map(|axis| match axis {
            Axis::Size(size) => size.to_string(),
            Axis::Name(name) => name.clone(),
        });
        format!("[{}]", axes.collect::<Vec<_>>().join(", "))
    }
}

/// The rows of one batch, a tensor for each of the manifest's data.
pub struct Batch<'a> {
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    all: &'a [u8],
    /// Bytes of a row.
    width: usize,
    tensor: DynTensor,
}

impl<'a> Batch<'a> {
    /// Makes room for a batch of the rows.
    pub fn new(rows: &'a Rows, manifest: &Manifest, batch: usize) -> Outcome<Self> {
        let given = rows.inputs.whole();
        let part = |data| {
            let piece = find(&given, data)?;
            let View::Numbers(all) = piece.data else {
                return None;
            };
            let mut shape = piece.shape.clone();
            shape[0] = batch as i64;
            Some((piece.dtype, shape, all))
        };
        let parts = manifest.data.iter().filter_map(part);
        let parts = parts.map(|(dtype, shape, all)| {
            Ok(Part {
                all,
                width: all.len() / rows.count.max(1),
                tensor: DynTensor::new(&Allocator::default(), dtype.element(), shape)
                    .map_err(|error| Failure::crash(error.to_string()))?,
            })
        });
        Ok(Batch {
            parts: parts.collect::<Outcome<_>>()?,
        })
    }

    /// Copies rows into the tensors.
    pub fn gather(&mut self, rows: &[usize]) {
        for part in &mut self.parts {
            let into = tensors::bytes_mut(&mut part.tensor);
            if part.width == 0 {
                continue;
            }
            for (to, row) in into.chunks_exact_mut(part.width).zip(rows) {
                to.copy_from_slice(&part.all[row * part.width..][..part.width]);
            }
        }
    }

    /// The tensor of the manifest's data at a place.
    pub fn tensor(&self, place: usize) -> &DynTensor {
        &self.parts[place].tensor
    }
}
