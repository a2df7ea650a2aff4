//! Output tensors, written as the batches come.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dtype::Dtype;
use crate::failure::{Failure, Outcome, bad_input};
use crate::values::Output;

/// Joins the outputs of batches along their first axis.
pub struct Writer {
    folder: PathBuf,
    outputs: Vec<Joined>,
}

struct Joined {
    name: String,
    file: String,
    /// What all parts share, and the rows so far; None before the first part.
    whole: Option<Whole>,
}

enum Whole {
    Tensor {
        dtype: Dtype,
        shape: Vec<i64>,
        file: File,
    },
    Other(String),
}

impl Writer {
    pub fn new(folder: &Path, names: Vec<String>) -> Outcome<Self> {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        let joined = |(index, name)| Joined {
            name,
            file: format!("output-{index}.bin"),
            whole: None,
        };
        Ok(Writer {
            folder: folder.to_owned(),
            outputs: names.into_iter().enumerate().map(joined).collect(),
        })
    }

    pub fn header(&self) -> PathBuf {
        self.folder.join("header.json")
    }

    /// Adds what a run gave. `rows`: of its batch, which every output must have.
    pub fn add(&mut self, found: &[Output], rows: Option<usize>) -> Outcome<()> {
        for (joined, output) in self.outputs.iter_mut().zip(found) {
            joined.add(&self.folder, output, rows)?;
        }
        Ok(())
    }

    /// Writes the header.
    pub fn finish(self) -> Outcome<()> {
        let tensors: Vec<Value> = self.outputs.iter().filter_map(Joined::entry).collect();
        let path = self.header();
        fs::write(&path, format!("{}\n", json!({ "tensors": tensors })))
            .map_err(|error| unwritable(&path, error))
    }
}

impl Joined {
    fn add(&mut self, folder: &Path, output: &Output, rows: Option<usize>) -> Outcome<()> {
        let Some(dtype) = output.dtype else {
            self.whole = Some(Whole::Other(output.kind.clone()));
            return Ok(());
        };
        let first = output.shape.first().copied();
        if let Some(rows) = rows
            && first != Some(rows as i64)
        {
            return Err(bad_input!(
                "output '{}' has shape {:?} for a batch of {rows} rows, expected them first",
                self.name,
                output.shape
            ));
        }
        let path = folder.join(&self.file);
        match &mut self.whole {
            Some(Whole::Tensor {
                dtype: before,
                shape,
                file,
            }) => {
                if *before != dtype || shape[1..] != output.shape[1..] {
                    return Err(bad_input!(
                        "output '{}' has shape {:?} after {shape:?}: batches cannot be joined",
                        self.name,
                        output.shape
                    ));
                }
                shape[0] += output.shape[0];
                file.write_all(&output.bytes)
            }
            _ => File::create(&path).and_then(|mut file| {
                file.write_all(&output.bytes)?;
                self.whole = Some(Whole::Tensor {
                    dtype,
                    shape: output.shape.clone(),
                    file,
                });
                Ok(())
            }),
        }
        .map_err(|error| unwritable(&path, error))
    }

    fn entry(&self) -> Option<Value> {
        match self.whole.as_ref()? {
            Whole::Tensor { dtype, shape, .. } => Some(json!({
                "name": self.name, "dtype": dtype.name(), "shape": shape, "file": self.file
            })),
            Whole::Other(kind) => Some(json!({ "name": self.name, "kind": kind })),
        }
    }
}

pub fn unwritable(path: &Path, error: std::io::Error) -> Failure {
    Failure::crash(format!("{}: cannot be written: {error}", path.display()))
}
