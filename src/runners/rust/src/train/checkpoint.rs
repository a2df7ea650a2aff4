//! Writes state files: the same state is the same file in every language.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Outcome;
use crate::train::manifest::Manifest;
use crate::train::state;
use crate::writer::unwritable;

const ALIGNMENT: usize = 8;

/// Writes states of one step to one file.
pub struct Checkpoint {
    path: PathBuf,
    temporary: PathBuf,
    /// The same of every state.
    header: Vec<u8>,
}

impl Checkpoint {
    pub fn new(path: &Path, manifest: &Manifest) -> Self {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}", std::process::id()));
        Checkpoint {
            path: path.to_owned(),
            temporary: path.with_file_name(name),
            header: header(manifest),
        }
    }

    /// Writes the tensors, which stand in the manifest's order; where that fails, the file of
    /// before stays.
    pub fn write(&self, tensors: &[Cow<[u8]>]) -> Outcome<()> {
        self.replace(tensors)
            .inspect_err(|_| {
                // What could not be made is not there to be removed.
                let _ = fs::remove_file(&self.temporary);
            })
            .map_err(|error| unwritable(&self.path, error))
    }

    /// Removes temporary files of this checkpoint that killed runs left; of runs that go on they
    /// stay.
    pub fn remove_left(&self) {
        let begin = format!(".{}.", self.path.file_name().unwrap_or_default().display());
        for file in fs::read_dir(self.folder()).into_iter().flatten().flatten() {
            let name = file.file_name().into_string().unwrap_or_default();
            let number = name
                .strip_prefix(&begin)
                .and_then(|number| number.parse::<u32>().ok());
            if number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
                // Another run may have removed it.
                let _ = fs::remove_file(file.path());
            }
        }
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    fn replace(&self, tensors: &[Cow<[u8]>]) -> io::Result<()> {
        let folder = self.folder();
        fs::create_dir_all(folder)?;
        let mut file = BufWriter::new(File::create(&self.temporary)?);
        file.write_all(&self.header)?;
        for tensor in tensors {
            file.write_all(tensor)?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        // The name too must outlast a power cut.
        File::open(folder)?.sync_all()
    }
}

/// The header's length and the header, filled up with spaces.
fn header(manifest: &Manifest) -> Vec<u8> {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut json = format!(
        "{{{}:{{\"step_graph\":{}}}",
        text(state::METADATA),
        text(&manifest.step_graph)
    );
    let mut begin = 0;
    for tensor in &manifest.state {
        let end = begin + tensor.bytes();
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        json += &format!(
            ",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{begin},{end}]}}",
            text(&tensor.name),
            state::word(tensor.dtype).unwrap_or_default(),
            shape.join(",")
        );
        begin = end;
    }
    json.push('}');
    let length = json.len().next_multiple_of(ALIGNMENT);
    let mut bytes = (length as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(json.as_bytes());
    bytes.resize(size_of::<u64>() + length, b' ');
    bytes
}
