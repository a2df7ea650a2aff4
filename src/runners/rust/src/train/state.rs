//! State files: safetensors, as docs/portable-training-step.md has them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::dtype::Dtype;
use crate::failure::{Outcome, bad_input};
use crate::train::manifest::{Manifest, State};
use crate::train::tensors;

/// Before the header stands its length.
const PREFIX: u64 = size_of::<u64>() as u64;
/// What safetensors allows a header.
const LONGEST_HEADER: u64 = 100_000_000;
/// In the header not the name of a tensor.
pub const METADATA: &str = "__metadata__";

const NAMES: [(&str, Dtype); 13] = [
    ("F32", Dtype::Float32),
    ("F64", Dtype::Float64),
    ("F16", Dtype::Float16),
    ("BF16", Dtype::Bfloat16),
    ("I8", Dtype::Int8),
    ("I16", Dtype::Int16),
    ("I32", Dtype::Int32),
    ("I64", Dtype::Int64),
    ("U8", Dtype::Uint8),
    ("U16", Dtype::Uint16),
    ("U32", Dtype::Uint32),
    ("U64", Dtype::Uint64),
    ("BOOL", Dtype::Bool),
];

/// Returns safetensors' word for a type; strings have none.
pub fn word(dtype: Dtype) -> Option<&'static str> {
    NAMES
        .iter()
        .find_map(|(word, known)| (*known == dtype).then_some(*word))
}

/// What the header says of the tensors.
type Entries = BTreeMap<String, Entry>;

#[derive(serde::Deserialize)]
#[serde(expecting = "dtype, shape and data_offsets")]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    /// From the first byte behind the header.
    data_offsets: (u64, u64),
}

/// A state file of the manifest's step, whose tensors are still to be read.
pub struct StateFile {
    path: PathBuf,
    file: File,
    /// Where each tensor begins, in the manifest's order.
    begins: Vec<u64>,
    /// The number of updates done.
    pub step: usize,
}

impl StateFile {
    /// Opens it; complains unless it is a state of the manifest's step, whole and nothing else.
    pub fn open(path: &Path, manifest: &Manifest) -> Outcome<Self> {
        let at = path.display();
        let unreadable = |error| bad_input!("{at}: cannot be read: {error}");
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let (entries, end) = header(&file, size, manifest)
            .map_err(unreadable)?
            .map_err(|why| bad_input!("{at}: is no state of the step: {why}"))?;
        let begins = check_layout(&entries, size - end)
            .and_then(|()| matched(&entries, manifest))
            .map_err(|why| bad_input!("{at}: is no state of the step: {why}"))?;
        let begins = begins.iter().map(|begin| end + begin).collect();
        let mut state = StateFile {
            path: path.to_owned(),
            file,
            begins,
            step: 0,
        };
        state.check_finite(manifest)?;
        let mut counter = [0; 8];
        let place = manifest.counter().map_err(|why| bad_input!("{why}"))?;
        state.read(place, &mut counter)?;
        let step = i64::from_le_bytes(counter);
        state.step = usize::try_from(step)
            .map_err(|_| bad_input!("{at}: has done {step} steps, expected >= 0"))?;
        Ok(state)
    }

    fn check_finite(&self, manifest: &Manifest) -> Outcome<()> {
        for (place, tensor) in manifest.state.iter().enumerate() {
            let mut bytes = vec![0; tensor.bytes()];
            self.read(place, &mut bytes)?;
            if !tensors::are_finite(tensor.dtype, &bytes) {
                return Err(bad_input!(
                    "{}: tensor '{}' has numbers that are not finite",
                    self.path.display(),
                    tensor.name
                ));
            }
        }
        Ok(())
    }

    /// Reads a tensor, by its place in the manifest.
    pub fn read(&self, place: usize, bytes: &mut [u8]) -> Outcome<()> {
        self.file
            .read_exact_at(bytes, self.begins[place])
            .map_err(|error| bad_input!("{}: cannot be read: {error}", self.path.display()))
    }
}

/// Reads the header, and where the tensors begin in the file; or says why there is none.
fn header(
    mut file: &File,
    size: u64,
    manifest: &Manifest,
) -> io::Result<Result<(Entries, u64), String>> {
    if size < PREFIX {
        return Ok(Err(format!("has {size} bytes, expected a header")));
    }
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER.min(size - PREFIX) {
        return Ok(Err(format!(
            "has a header of {length} bytes, the file {size}"
        )));
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    let mut json = serde_json::Deserializer::from_slice(&text);
    let entries = Header(manifest).deserialize(&mut json);
    Ok(entries
        .and_then(|entries| json.end().map(|()| (entries, PREFIX + length)))
        .map_err(|error| error.to_string()))
}

/// Reads the header of a state of this step: its tensors, no more than the manifest has, whose names
/// are all different. It complains of another step's state at once: that has other tensors too.
struct Header<'a>(&'a Manifest);

impl<'de> DeserializeSeed<'de> for Header<'_> {
    type Value = Entries;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Entries, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Header<'_> {
    type Value = Entries;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a header that is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::new();
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            let wrong = |error: A::Error| de::Error::custom(format!("'{name}': {error}"));
            let is_twice = if name == METADATA {
                let metadata = map.next_value().map_err(wrong)?;
                self.check(&metadata).map_err(de::Error::custom)?;
                mem::replace(&mut has_metadata, true)
            } else {
                let entry = map.next_value().map_err(wrong)?;
                entries.insert(name.clone(), entry).is_some()
            };
            if is_twice {
                return Err(de::Error::custom(format!("'{name}' is there twice")));
            }
            if entries.len() > self.0.state.len() {
                let known = |name: &&String| self.0.state.iter().any(|one| one.name == **name);
                let strange = entries.keys().find(|name| !known(name));
                let why = format!("tensor '{}'", strange.map_or("", String::as_str));
                return Err(de::Error::custom(why + ", which the step does not have"));
            }
        }
        if !has_metadata {
            return Err(de::Error::custom(format!("no '{METADATA}'")));
        }
        Ok(entries)
    }
}

impl Header<'_> {
    /// Complains unless the metadata name the manifest's step.
    fn check(&self, metadata: &BTreeMap<String, String>) -> Result<(), String> {
        let wanted = &self.0.step_graph;
        match metadata.get("step_graph") {
            Some(graph) if graph == wanted => Ok(()),
            Some(graph) => Err(format!("a state of step {graph}, expected one of {wanted}")),
            None => Err(format!("no 'step_graph' in its '{METADATA}'")),
        }
    }
}

/// Complains unless the tensors follow on each other, without a gap, to the end of the file.
fn check_layout(entries: &Entries, room: u64) -> Result<(), String> {
    let mut parts: Vec<_> = entries.iter().collect();
    parts.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut end = 0;
    for (name, entry) in parts {
        let (begin, next) = entry.data_offsets;
        if begin != end || next < begin {
            return Err(format!(
                "tensor '{name}' is at bytes {begin} to {next}, expected it to begin at {end}"
            ));
        }
        end = next;
    }
    if end != room {
        return Err(format!("its tensors end at byte {end} of {room}"));
    }
    Ok(())
}

/// Returns where each tensor of the manifest begins, or what does not fit. There are no more.
fn matched(entries: &Entries, manifest: &Manifest) -> Result<Vec<u64>, String> {
    let begins = manifest.state.iter().map(|tensor| {
        let entry = entries.get(&tensor.name);
        let entry = entry.ok_or_else(|| format!("no tensor '{}'", tensor.name))?;
        entry.begin(tensor)
    });
    begins.collect()
}

impl Entry {
    /// Returns where it begins, if it is what the manifest says.
    fn begin(&self, tensor: &State) -> Result<u64, String> {
        let wanted = word(tensor.dtype).unwrap_or_default();
        let (begin, end) = self.data_offsets;
        if self.dtype != wanted || self.shape != tensor.shape {
            return Err(format!(
                "tensor '{}' is {} of shape {:?}, expected {wanted} of shape {:?}",
                tensor.name, self.dtype, self.shape, tensor.shape
            ));
        }
        if end - begin != tensor.bytes() as u64 {
            return Err(format!(
                "tensor '{}' has {} bytes, expected {}",
                tensor.name,
                end - begin,
                tensor.bytes()
            ));
        }
        Ok(begin)
    }
}
