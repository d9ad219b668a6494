//! Pipelines: which passes run in which order, by their names in options, with a callback after each of them.
//!
//! What each pass does is in [`PASSES`].

use super::{PASSES, Pass, pass};
use crate::ir::Shader;
use std::convert::Infallible;
use std::str::FromStr;

/// The name of the standard pipeline in a list of passes.
pub const STANDARD: &str = "standard";

/// The most rounds of the standard pipeline. A shader that would need more is correct, but may be slower.
const ROUNDS: usize = 4;

/// A name in a list of passes that is not a pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown pass `{0}`; the passes are {STANDARD}, {names}", names = PASSES.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownPass(pub String);

/// A pass that has run.
#[derive(Clone, Copy)]
pub struct PassRun {
    /// The pass.
    pub pass: Pass,
    /// Its number among all that ran, from 1.
    pub number: usize,
    /// Whether it changed the shader.
    pub changed: bool,
}

#[derive(Clone, Copy)]
enum PipelineStep {
    Single(Pass),
    Standard,
}

/// Passes in the order in which they run.
#[derive(Clone)]
pub struct Pipeline {
    steps: Vec<PipelineStep>,
}

impl Default for Pipeline {
    /// The standard pipeline.
    fn default() -> Self {
        Pipeline { steps: vec![PipelineStep::Standard] }
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.steps.iter().map(|step| match step {
            PipelineStep::Single(pass) => pass.name,
            PipelineStep::Standard => STANDARD,
        });
        f.debug_list().entries(names).finish()
    }
}

impl FromIterator<Pass> for Pipeline {
    fn from_iter<I: IntoIterator<Item = Pass>>(passes: I) -> Self {
        Pipeline { steps: passes.into_iter().map(PipelineStep::Single).collect() }
    }
}

impl FromStr for Pipeline {
    type Err = UnknownPass;

    /// Names of passes, separated by commas; [`STANDARD`] is the standard pipeline.
    fn from_str(list: &str) -> Result<Self, UnknownPass> {
        let step = |name: &str| match pass(name) {
            Some(pass) => Ok(PipelineStep::Single(*pass)),
            None if name == STANDARD => Ok(PipelineStep::Standard),
            None => Err(UnknownPass(name.to_owned())),
        };
        Ok(Pipeline { steps: list.split(',').map(|name| step(name.trim())).collect::<Result<_, _>>()? })
    }
}

impl Pipeline {
    /// Runs the passes. `watch` is called after each of them. The result is whether one changed the shader.
    ///
    /// # Errors
    /// The error of `watch`, after which no pass runs.
    pub fn run<E>(
        &self,
        shader: &mut Shader,
        mut watch: impl FnMut(PassRun, &Shader) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (mut number, mut any) = (0, false);
        let mut ran = |pass: Pass, changed: bool, shader: &Shader| {
            number += 1;
            watch(PassRun { pass, number, changed }, shader)
        };
        for step in &self.steps {
            any |= match *step {
                PipelineStep::Standard => rounds(shader, &mut ran)?,
                PipelineStep::Single(pass) => {
                    let changed = (pass.run)(shader);
                    ran(pass, changed, shader)?;
                    changed
                }
            };
        }
        Ok(any)
    }
}

/// Runs the standard pipeline: its passes in order, repeated while one of them changes something, up to a fixed number of rounds. A pass that
/// left the shader as it was does not run again before another one has changed it. The
/// result is whether the shader changed.
pub fn standard(shader: &mut Shader) -> bool {
    match rounds(shader, &mut |_, _, _| Ok::<(), Infallible>(())) {
        Ok(changed) => changed,
        Err(never) => match never {},
    }
}

fn rounds<E>(
    shader: &mut Shader,
    ran: &mut impl FnMut(Pass, bool, &Shader) -> Result<(), E>,
) -> Result<bool, E> {
    // How many changes there were so far, and by pass the number at which it last left the shader as it was. It would do so again.
    let mut changes = 0u32;
    let mut unchanged_at = [None; PASSES.len()];
    for _ in 0..ROUNDS {
        let before = changes;
        for (pass, unchanged_at) in PASSES.iter().zip(&mut unchanged_at).filter(|(pass, _)| pass.standard) {
            if *unchanged_at == Some(changes) {
                continue;
            }
            let changed = (pass.run)(shader);
            changes += u32::from(changed);
            *unchanged_at = (!changed).then_some(changes);
            ran(*pass, changed, shader)?;
        }
        if changes == before {
            break;
        }
    }
    let dead = PASSES.iter().position(|pass| pass.name == "dead");
    if let Some((dead, at)) = dead.and_then(|at| PASSES.get(at).zip(unchanged_at.get(at)))
        && *at != Some(changes)
    {
        let changed = (dead.run)(shader);
        changes += u32::from(changed);
        ran(*dead, changed, shader)?;
    }
    Ok(changes > 0)
}
