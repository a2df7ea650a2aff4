//! What each step is done with: rows and hyper-parameters.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::arguments::Training;
use crate::failure::{Outcome, bad_input};
use crate::train::manifest::Hyper;

/// The rows of all batches, one behind the other.
pub struct Order {
    rows: Vec<usize>,
    batch: usize,
}

impl Order {
    /// Reads as many batches as there are until the last step.
    pub fn read(training: &Training) -> Outcome<Self> {
        let path = &training.order;
        let at = path.display();
        let unreadable = |error| bad_input!("{at}: cannot be read: {error}");
        let size = fs::metadata(path).map_err(unreadable)?.len();
        let wanted = training
            .until
            .checked_mul(training.accumulate)
            .and_then(|batches| batches.checked_mul(training.batch));
        let bytes = wanted.and_then(|rows| rows.checked_mul(size_of::<i64>()));
        let (Some(bytes), true) = (bytes.filter(|bytes| *bytes as u64 <= size), size % 8 == 0)
        else {
            return Err(bad_input!(
                "{at}: holds {size} bytes, expected int64 rows of {} batches of {}",
                training.until as u128 * training.accumulate as u128,
                training.batch
            ));
        };
        let mut raw = vec![0; bytes];
        File::open(path)
            .and_then(|mut file| file.read_exact(&mut raw))
            .map_err(unreadable)?;
        let (numbers, _) = raw.as_chunks::<8>();
        let rows = numbers.iter().enumerate().map(|(place, number)| {
            let row = i64::from_le_bytes(*number);
            usize::try_from(row).map_err(|_| bad_input!("{at}: entry {place} is row {row}"))
        });
        Ok(Order {
            rows: rows.collect::<Outcome<_>>()?,
            batch: training.batch,
        })
    }

    /// Complains of a row that the data do not have.
    pub fn check(&self, rows: usize, path: &Path) -> Outcome<()> {
        match self.rows.iter().position(|row| *row >= rows) {
            None => Ok(()),
            Some(place) => Err(bad_input!(
                "{}: entry {place} is row {}, the data have {rows} rows",
                path.display(),
                self.rows[place]
            )),
        }
    }

    /// The rows of a batch, counted from the first one of step 0.
    pub fn batch(&self, index: usize) -> &[usize] {
        &self.rows[index * self.batch..][..self.batch]
    }
}

enum Values {
    Always(f64),
    /// One for each step from 0.
    Each(Vec<f64>),
}

impl Values {
    /// Reads a number or a list of at least so many.
    fn parse(value: &Value, until: usize) -> Result<Self, String> {
        let wrong = || format!("is {value}, expected a number or a list of numbers");
        let Value::Array(list) = value else {
            return value.as_f64().map(Values::Always).ok_or_else(wrong);
        };
        if list.len() < until {
            return Err(format!(
                "has {} values, expected one for each of {until} steps",
                list.len()
            ));
        }
        let numbers: Option<_> = list.iter().map(Value::as_f64).collect();
        numbers.map(Values::Each).ok_or_else(wrong)
    }
}

/// The values of hyper-parameters, in the manifest's order.
pub struct Schedule(Vec<Values>);

impl Schedule {
    /// Reads the file, if there is one; complains of an unknown name or a value that is none.
    pub fn read(file: Option<&Path>, hyper: &[Hyper], until: usize) -> Outcome<Self> {
        let defaults = hyper.iter().map(|one| Values::Always(one.default));
        let mut schedule = Schedule(defaults.collect());
        let Some(file) = file else {
            return Ok(schedule);
        };
        let at = file.display();
        let text = fs::read(file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
        let given: Map<String, Value> = serde_json::from_slice(&text)
            .map_err(|error| bad_input!("{at}: expected hyper-parameters by name: {error}"))?;
        for (name, value) in &given {
            let Some(place) = hyper.iter().position(|one| one.name == *name) else {
                let names: Vec<_> = hyper.iter().map(|one| one.name.as_str()).collect();
                return Err(bad_input!(
                    "{at}: hyper-parameter '{name}', expected one of {}",
                    names.join(", ")
                ));
            };
            schedule.0[place] = Values::parse(value, until)
                .map_err(|why| bad_input!("{at}: hyper-parameter '{name}' {why}"))?;
        }
        Ok(schedule)
    }

    /// The values of a step.
    pub fn at(&self, step: usize) -> impl Iterator<Item = f64> {
        self.0.iter().map(move |values| match values {
            Values::Always(value) => *value,
            Values::Each(list) => list[step],
        })
    }
}
