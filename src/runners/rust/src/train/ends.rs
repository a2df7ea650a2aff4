//! What goes into the graphs of a step, and what comes out of them.

use std::path::Path;

use ort::session::Session;
use ort::value::Outlet;

use crate::failure::{Outcome, bad_input};
use crate::train::manifest::{Graph, Manifest, State};

/// What an input of a graph is, by its place in the manifest.
pub enum Source {
    Data(usize),
    Hyper(usize),
    Seed,
    State(usize),
}

/// What an output is.
pub enum Target {
    Metric(usize),
    State(usize),
}

/// Names, each with what it stands for.
type Named<T> = Vec<(String, T)>;

/// Finds the inputs and outputs of a graph; complains of one that is not in the manifest, or not of
/// the session.
pub fn find(
    session: &Session,
    graph: &Graph,
    manifest: &Manifest,
) -> Outcome<(Named<Source>, Named<Target>)> {
    check(&graph.file, "takes", session.inputs(), &graph.inputs)?;
    check(&graph.file, "gives", session.outputs(), &graph.outputs)?;
    let unknown = |name: &str| {
        bad_input!(
            "{}: input or output '{name}' is not in the manifest",
            graph.file.display()
        )
    };
    let inputs = graph.inputs.iter().map(|name| {
        let source = source(name, manifest).ok_or_else(|| unknown(name))?;
        Ok((name.clone(), source))
    });
    let outputs = graph.outputs.iter().map(|name| {
        let target = target(name, manifest).ok_or_else(|| unknown(name))?;
        Ok((name.clone(), target))
    });
    Ok((
        inputs.collect::<Outcome<_>>()?,
        outputs.collect::<Outcome<_>>()?,
    ))
}

/// Complains unless these are the ends of a graph that the manifest names.
fn check(file: &Path, does: &str, ends: &[Outlet], named: &[String]) -> Outcome<()> {
    let mut found: Vec<&str> = ends.iter().map(Outlet::name).collect();
    let mut wanted: Vec<&str> = named.iter().map(String::as_str).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    if found != wanted {
        let at = file.display();
        return Err(bad_input!(
            "{at}: {does} {found:?}, the manifest says {wanted:?}"
        ));
    }
    Ok(())
}

fn source(name: &str, manifest: &Manifest) -> Option<Source> {
    let data = manifest.data.iter().position(|data| data.name == name);
    let hyper = manifest.hyper.iter().position(|hyper| hyper.name == name);
    let seed = manifest.seed.as_ref().filter(|seed| seed.name == name);
    let state = manifest.state.iter().position(|tensor| tensor.name == name);
    data.map(Source::Data)
        .or(hyper.map(Source::Hyper))
        .or(seed.map(|_| Source::Seed))
        .or(state.map(Source::State))
}

fn target(name: &str, manifest: &Manifest) -> Option<Target> {
    let is_next = |tensor: &State| tensor.next.as_deref() == Some(name);
    let metric = manifest
        .metrics
        .iter()
        .position(|metric| metric.name == name);
    let state = manifest.state.iter().position(is_next);
    metric.map(Target::Metric).or(state.map(Target::State))
}
