//! State files: safetensors, as docs/portable-training-step.md has them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

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

/// A state file's header.
struct Header {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Entry>,
    /// Where the tensors begin in the file.
    end: u64,
}

#[derive(serde::Deserialize)]
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
        let header = header(&file, size)
            .map_err(unreadable)?
            .and_then(|header| check_layout(&header, size - header.end).map(|()| header))
            .map_err(|why| bad_input!("{at}: is no safetensors file: {why}"))?;
        let begins = matched(&header, manifest).map_err(|why| bad_input!("{at}: {why}"))?;
        let begins = begins.iter().map(|begin| header.end + begin).collect();
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

/// Reads the header, or says why there is none.
fn header(mut file: &File, size: u64) -> io::Result<Result<Header, String>> {
    if size < PREFIX {
        return Ok(Err(format!("it has {size} bytes")));
    }
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER.min(size - PREFIX) {
        return Ok(Err(format!(
            "its header has {length} bytes, the file {size}"
        )));
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    Ok(Header::parse(&text, PREFIX + length))
}

impl Header {
    fn parse(text: &[u8], end: u64) -> Result<Self, String> {
        let Pairs(pairs) =
            serde_json::from_slice(text).map_err(|error| format!("its header: {error}"))?;
        let mut header = Header {
            metadata: BTreeMap::new(),
            tensors: BTreeMap::new(),
            end,
        };
        for (name, value) in pairs {
            let wrong = |error| format!("'{name}': {error}");
            if name == METADATA {
                header.metadata = serde_json::from_value(value).map_err(wrong)?;
                continue;
            }
            let entry = serde_json::from_value(value).map_err(wrong)?;
            header.tensors.insert(name, entry);
        }
        Ok(header)
    }
}

/// An object in JSON, whose names are all different.
struct Pairs(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if pairs.contains_key(&name) {
                        return Err(de::Error::custom(format!("'{name}' is there twice")));
                    }
                    pairs.insert(name, value);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Object)
    }
}

/// Complains unless the tensors follow on each other, without a gap, to the end of the file.
fn check_layout(header: &Header, room: u64) -> Result<(), String> {
    let mut parts: Vec<_> = header.tensors.iter().collect();
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

/// Returns where each tensor of the manifest begins, or what does not fit.
fn matched(header: &Header, manifest: &Manifest) -> Result<Vec<u64>, String> {
    match header.metadata.get("step_graph") {
        Some(graph) if *graph == manifest.step_graph => (),
        Some(graph) => {
            return Err(format!(
                "is a state of step {graph}, expected one of {}",
                manifest.step_graph
            ));
        }
        None => return Err("has no 'step_graph' in its metadata, expected a state".to_owned()),
    }
    let known: HashSet<_> = manifest.state.iter().map(|tensor| &tensor.name).collect();
    if let Some(name) = header.tensors.keys().find(|name| !known.contains(name)) {
        return Err(format!("has tensor '{name}', which the step does not have"));
    }
    let begins = manifest.state.iter().map(|tensor| {
        let entry = header.tensors.get(&tensor.name);
        let entry = entry.ok_or_else(|| format!("has no tensor '{}'", tensor.name))?;
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
