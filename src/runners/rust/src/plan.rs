//! The plan, docs/runner-contract.md: one flat file. Python has checked what it says.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::{ffi::OsStrExt, fs::FileExt};
use std::path::Path;

use crate::result::{Failure, Outcome};

#[cfg(not(target_endian = "little"))]
compile_error!("numbers are handed on as they lie in the files, which are little-endian");

const BYTE_ORDER_MARK: u32 = 0x0102_0304;
const VERSION: u32 = 1;
const HEADER: usize = 192;
const ENTRY: usize = 128;

/// What a program does; else `latency`.
pub const LOAD: u32 = 2;
pub const CASES: u32 = 3;
pub const TRAIN: u32 = 4;

/// What an entry is. The model's outputs (9) are known by its session; the baselines' folder of the
/// step (21) is not for us.
pub mod role {
    pub const LIBRARY: u32 = 1;
    pub const PROVIDER: u32 = 2;
    pub const OUT: u32 = 3;
    pub const OPTION: u32 = 4;
    pub const PROVIDER_OPTION: u32 = 5;
    pub const MODEL: u32 = 6;
    pub const OUTPUTS: u32 = 7;
    pub const INPUT: u32 = 8;
    pub const PROFILE: u32 = 10;
    pub const ARRIVALS: u32 = 11;
    pub const GRAPH: u32 = 12;
    pub const STATE: u32 = 13;
    pub const DATA: u32 = 14;
    pub const HYPER: u32 = 15;
    pub const SEED: u32 = 16;
    pub const METRIC: u32 = 17;
    pub const ORDER: u32 = 18;
    pub const TAKES: u32 = 19;
    pub const GIVES: u32 = 20;
}

pub struct Plan {
    pub level: u32,
    /// Rows of a batch; 0: the tensors whole.
    pub batch: usize,
    pub rows: usize,
    pub warmup: usize,
    pub min_runs: usize,
    pub max_ns: u64,
    pub sessions: usize,
    pub last_begin_ns: u64,
    pub first_step: usize,
    pub steps: usize,
    pub checkpoint_every: usize,
    pub accumulate: usize,
    pub seed: i64,
    pub state_bytes: u64,
    pub entries: Vec<Entry>,
}

pub struct Entry {
    pub role: u32,
    pub group: u32,
    /// ONNX's number, which is ONNX Runtime's too.
    pub dtype: u32,
    /// The number of another entry.
    pub link: usize,
    pub name: &'static str,
    /// The text, which may be a path.
    pub path: &'static Path,
    /// Where the data lie in the file that the text names.
    pub offset: u64,
    size: usize,
    pub shape: Vec<i64>,
}

impl Plan {
    /// Reads a plan, which stays in memory; says why when it is none of ours.
    pub fn read(path: &Path) -> Result<Self, String> {
        let raw = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?.leak();
        if raw.len() < 24 || !raw.starts_with(b"TRANSECT") {
            return Err("is no plan, expected a file that begins with TRANSECT".to_owned());
        }
        let (mark, version, size) = (u32_at(raw, 8), u32_at(raw, 12), u64_at(raw, 16));
        if mark != BYTE_ORDER_MARK {
            return Err(format!(
                "is of another byte order: mark {mark:#010x}, expected {BYTE_ORDER_MARK:#010x}"
            ));
        }
        if version != VERSION {
            return Err(format!("is of version {version}, expected {VERSION}"));
        }
        if size != raw.len() as u64 || raw.len() < HEADER {
            return Err(format!("holds {} bytes, expected {size}", raw.len()));
        }
        let entries = (0..u32_at(raw, 28) as usize).map(|number| HEADER + number * ENTRY);
        Ok(Plan {
            level: u32_at(raw, 24),
            batch: u64_at(raw, 32) as usize,
            rows: u64_at(raw, 40) as usize,
            warmup: u64_at(raw, 48) as usize,
            min_runs: u64_at(raw, 56) as usize,
            max_ns: u64_at(raw, 64),
            sessions: u64_at(raw, 72) as usize,
            last_begin_ns: u64_at(raw, 80),
            first_step: u64_at(raw, 88) as usize,
            steps: u64_at(raw, 96) as usize,
            checkpoint_every: u64_at(raw, 104) as usize,
            accumulate: u64_at(raw, 112) as usize,
            seed: u64_at(raw, 120) as i64,
            state_bytes: u64_at(raw, 128),
            entries: entries.map(|at| Entry::parse(raw, &raw[at..at + ENTRY])).collect(),
        })
    }

    /// The entries of a role, of all groups.
    pub fn all(&self, role: u32) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.role == role)
    }

    pub fn of(&self, role: u32, group: u32) -> impl Iterator<Item = &Entry> {
        self.all(role).filter(move |entry| entry.group == group)
    }

    /// The first entry of a role and group, which must be there.
    pub fn one(&self, role: u32, group: u32) -> &Entry {
        self.of(role, group).next().expect("the plan has it")
    }

    /// How many batches are full; the tensors whole are one.
    pub fn full_batches(&self) -> usize {
        self.rows.checked_div(self.batch).unwrap_or(1)
    }
}

impl Entry {
    fn parse(plan: &'static [u8], raw: &[u8]) -> Self {
        let text = |at| &plan[u64_at(raw, at) as usize..][..u64_at(raw, at + 8) as usize];
        let axes = u32_at(raw, 12) as usize;
        Entry {
            role: u32_at(raw, 0),
            group: u32_at(raw, 4),
            dtype: u32_at(raw, 8),
            link: u32_at(raw, 16) as usize,
            name: str::from_utf8(text(24)).expect("names are UTF-8"),
            path: Path::new(OsStr::from_bytes(text(40))),
            offset: u64_at(raw, 56),
            size: u64_at(raw, 64) as usize,
            shape: (0..axes).map(|axis| u64_at(raw, 72 + 8 * axis) as i64).collect(),
        }
    }

    /// The text, where it is a word or a number.
    pub fn word(&self) -> &'static str {
        self.path.to_str().expect("words are UTF-8")
    }

    /// The data, which stay in memory. The allocator's memory is aligned for every type.
    pub fn data(&self) -> Outcome<&'static [u8]> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.size).map_err(|_| {
            let said = format!("{}: no room for {} bytes", self.path.display(), self.size);
            Failure::new("out-of-memory", said)
        })?;
        bytes.resize(self.size, 0);
        self.read(&mut bytes)?;
        Ok(bytes.leak())
    }

    pub fn read(&self, bytes: &mut [u8]) -> Outcome<()> {
        let read = File::open(self.path).and_then(|file| file.read_exact_at(bytes, self.offset));
        read.map_err(|error| {
            let said = format!("{}: cannot be read: {error}", self.path.display());
            Failure::new("bad-input", said)
        })
    }
}

fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(raw[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(raw: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(raw[at..at + 8].try_into().expect("8 bytes"))
}
