//! Input tensors: raw little-endian files beside a `header.json`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::slice;

use serde::Deserialize;

use crate::dtype::Dtype;
use crate::failure::{Failure, Outcome, bad_input};

#[derive(Deserialize)]
struct Header {
    tensors: Vec<Entry>,
    batch: Option<usize>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    file: PathBuf,
}

/// One input, all rows.
struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<i64>,
    data: Data,
}

enum Data {
    Numbers(Numbers),
    Strings(Vec<String>),
}

/// Bytes that are aligned for every element type.
struct Numbers {
    words: Vec<u64>,
    bytes: usize,
}

/// A tensor, or rows of one, in the program's own memory.
pub struct Piece<'a> {
    pub name: &'a str,
    pub dtype: Dtype,
    pub shape: Vec<i64>,
    pub data: View<'a>,
}

#[derive(Clone, Copy)]
pub enum View<'a> {
    /// Row-major, aligned for their dtype.
    Numbers(&'a [u8]),
    Strings(&'a [String]),
}

/// What a run is fed with.
pub type Feed<'a> = Vec<Piece<'a>>;

pub struct Inputs {
    tensors: Vec<Tensor>,
    batch: Option<usize>,
}

impl Inputs {
    /// Reads `folder/header.json` and its tensors; complains naming file and entry.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let file = folder.join("header.json");
        let at = file.display();
        let text = fs::read(&file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
        let header: Header = serde_json::from_slice(&text).map_err(|error| {
            bad_input!("{at}: expected {{\"tensors\": [...], \"batch\": ...}}: {error}")
        })?;
        let mut tensors: Vec<Tensor> = Vec::new();
        for entry in header.tensors {
            if tensors.iter().any(|other| other.name == entry.name) {
                return Err(bad_input!("{at}: tensor '{}' is there twice", entry.name));
            }
            tensors.push(Tensor::read(folder, &file, entry)?);
        }
        let inputs = Inputs {
            tensors,
            batch: header.batch,
        };
        inputs.check_batch(&file)?;
        Ok(inputs)
    }

    fn check_batch(&self, header: &Path) -> Outcome<()> {
        let Some(batch) = self.batch else {
            return Ok(());
        };
        let rows: Vec<i64> = self
            .tensors
            .iter()
            .map(|tensor| tensor.shape.first().copied().unwrap_or(0))
            .collect();
        let same = rows.windows(2).all(|pair| pair[0] == pair[1]);
        match rows.first() {
            Some(&first) if same && batch >= 1 && batch as u64 <= first as u64 => Ok(()),
            _ => Err(bad_input!(
                "{}: needs N >= batch >= 1 rows, the same N in every tensor; \
                 got batch {batch} and {rows:?} rows",
                header.display()
            )),
        }
    }

    /// N, the rows of all tensors, when they are cut into batches.
    pub fn rows(&self) -> Option<usize> {
        self.batch.map(|_| self.tensors[0].shape[0] as usize)
    }

    /// All tensors, uncut.
    pub fn whole(&self) -> Feed<'_> {
        self.tensors.iter().map(Tensor::whole).collect()
    }

    /// All batches in order, the last one perhaps partial; without a batch one, of all.
    pub fn batches(&self) -> Vec<Feed<'_>> {
        let (Some(batch), Some(rows)) = (self.batch, self.rows()) else {
            return vec![self.whole()];
        };
        let cut = |start: usize| {
            let end = (start + batch).min(rows);
            self.tensors
                .iter()
                .map(|tensor| tensor.rows(start, end))
                .collect()
        };
        (0..rows).step_by(batch).map(cut).collect()
    }

    /// How many of `batches` are full.
    pub fn full_batches(&self) -> usize {
        match (self.batch, self.rows()) {
            (Some(batch), Some(rows)) => rows / batch,
            _ => 1,
        }
    }
}

impl Tensor {
    fn read(folder: &Path, header: &Path, entry: Entry) -> Outcome<Self> {
        let name = entry.name;
        let Some(dtype) = Dtype::parse(&entry.dtype) else {
            let names: Vec<_> = Dtype::ALL.iter().map(|dtype| dtype.name()).collect();
            return Err(bad_input!(
                "{}: tensor '{name}' is '{}', expected one of {}",
                header.display(),
                entry.dtype,
                names.join(", ")
            ));
        };
        let (count, shape) = elements(&entry.shape, dtype).ok_or_else(|| {
            bad_input!(
                "{}: tensor '{name}' has shape {:?}, which takes more bytes than there can be",
                header.display(),
                entry.shape
            )
        })?;
        let path = folder.join(entry.file);
        let unreadable = |error| {
            bad_input!(
                "{}: tensor '{name}' cannot be read: {error}",
                path.display()
            )
        };
        let facts = fs::metadata(&path).map_err(unreadable)?;
        let told = format!("tensor '{name}' of shape {shape:?} in {}", dtype.name());
        // Looked at before there is room for anything. A string is at least its length.
        let least = count * dtype.size();
        let fits = match dtype {
            Dtype::String => facts.len() >= least as u64,
            _ => facts.len() == least as u64,
        };
        if !facts.is_file() || !fits {
            return Err(bad_input!(
                "{}: holds {} bytes, {told} takes {}{least}",
                path.display(),
                facts.len(),
                if dtype == Dtype::String { ">= " } else { "" },
            ));
        }
        let mut bytes = Numbers::with_room(facts.len() as usize)?;
        File::open(&path)
            .and_then(|mut file| file.read_exact(bytes.as_mut_slice()))
            .map_err(unreadable)?;
        let at = path.display();
        let data = match dtype {
            Dtype::String => Data::Strings(
                strings(bytes.as_slice(), count)
                    .map_err(|why| bad_input!("{at}: {told}: {why}"))?,
            ),
            Dtype::Bool if bytes.as_slice().iter().any(|byte| *byte > 1) => {
                return Err(bad_input!("{at}: {told}: expected bytes of 0 and 1"));
            }
            _ => Data::Numbers(bytes),
        };
        Ok(Tensor {
            name,
            dtype,
            shape,
            data,
        })
    }

    fn whole(&self) -> Piece<'_> {
        let data = match &self.data {
            Data::Numbers(numbers) => View::Numbers(numbers.as_slice()),
            Data::Strings(strings) => View::Strings(strings),
        };
        Piece {
            name: &self.name,
            dtype: self.dtype,
            shape: self.shape.clone(),
            data,
        }
    }

    fn rows(&self, start: usize, end: usize) -> Piece<'_> {
        let mut piece = self.whole();
        let row: usize = self.shape[1..].iter().map(|axis| *axis as usize).product();
        piece.shape[0] = (end - start) as i64;
        piece.data = match piece.data {
            View::Numbers(bytes) => {
                let width = row * self.dtype.size();
                View::Numbers(&bytes[start * width..end * width])
            }
            View::Strings(strings) => View::Strings(&strings[start * row..end * row]),
        };
        piece
    }
}

/// Returns the number of elements and the shape, or None when their bytes overflow.
pub fn elements(shape: &[u64], dtype: Dtype) -> Option<(usize, Vec<i64>)> {
    let signed: Vec<i64> = shape
        .iter()
        .map(|axis| i64::try_from(*axis).ok())
        .collect::<Option<_>>()?;
    if shape.contains(&0) {
        return Some((0, signed));
    }
    let count = shape
        .iter()
        .try_fold(1_i64, |all, axis| all.checked_mul(*axis as i64))?;
    count.checked_mul(dtype.size() as i64)?;
    Some((count as usize, signed))
}

/// Parts strings of which each stands after its length in bytes.
fn strings(mut bytes: &[u8], count: usize) -> Result<Vec<String>, String> {
    let mut found = Vec::with_capacity(count);
    for number in 0..count {
        let cut = || format!("the file ends within string {number}");
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
        let (text, rest) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .ok_or_else(cut)?;
        let text = str::from_utf8(text)
            .map_err(|error| format!("string {number} is no UTF-8: {error}"))?;
        found.push(text.to_owned());
        bytes = rest;
    }
    match bytes.len() {
        0 => Ok(found),
        left => Err(format!("{left} bytes are left after {count} strings")),
    }
}

impl Numbers {
    fn with_room(bytes: usize) -> Outcome<Self> {
        let mut words: Vec<u64> = Vec::new();
        let wanted = bytes.div_ceil(size_of::<u64>());
        words
            .try_reserve_exact(wanted)
            .map_err(|_| Failure::Failed {
                cause: "out-of-memory",
                message: format!("no room for {bytes} bytes of an input"),
            })?;
        words.resize(wanted, 0);
        Ok(Numbers { words, bytes })
    }

    fn as_slice(&self) -> &[u8] {
        // SAFETY: the words are initialised and hold at least so many bytes.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and every pattern of bits is a word.
        unsafe { slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}
