//! Reduction: makes an interesting shader smaller, where a predicate decides what is interesting, as `spirv-reduce` and `llvm-reduce` do
//! for SPIR-V and LLVM IR.
//!
//! It takes a valid shader. Each step of a table lists possible edits, which are tried in groups: all of them first, then halves, down to
//! single ones. The predicate sees only candidates that are valid and lighter than the best shader so far. An interesting candidate
//! becomes the best one. Steps repeat until none of them succeeds, so no single edit of the table makes the result any lighter. The same
//! predicate gives the same result.
//!
//! It does not keep the meaning of a shader. Only the predicate knows what matters.

mod edit;
mod flow;
mod instructions;
mod interface;
mod lanes;
mod weight;

use crate::ir::{Function, Shader};
use crate::text::{parse, print};
use crate::valid::validate;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// An edit: the number of an entity, and what is done with it.
type Site = (usize, usize);

/// The edits of a step.
enum Edits {
    /// Edits within each function.
    Function(fn(&Function) -> Vec<Site>, fn(&mut Function, &[Site])),
    /// Edits of the shader as a whole.
    Shader(fn(&Shader) -> Vec<Site>, fn(&mut Shader, &[Site])),
}

/// Every step; those that remove most come first.
const STEPS: &[Edits] = &[
    Edits::Shader(interface::positions, interface::drop_positions),
    Edits::Shader(interface::passes, interface::run_pass),
    Edits::Function(flow::regions, flow::cut),
    Edits::Function(flow::ifs, flow::keep_arm),
    Edits::Function(flow::loops, flow::run_once),
    Edits::Function(instructions::removable, instructions::remove),
    Edits::Function(flow::blocks, flow::unwrap),
    Edits::Function(instructions::forwards, instructions::forward),
    Edits::Function(flow::results, flow::drop_results),
    Edits::Function(flow::parameters, flow::drop_parameters),
    Edits::Function(instructions::unused, instructions::drop_unused),
    Edits::Shader(interface::functions, interface::drop_functions),
    Edits::Shader(interface::variables, interface::drop_variables),
    Edits::Shader(interface::bindings, interface::merge_bindings),
    Edits::Function(lanes::components, lanes::narrow),
    Edits::Function(instructions::operands, instructions::zero_operands),
    Edits::Function(instructions::constants, instructions::lower_constants),
    Edits::Function(instructions::duplicates, instructions::share_constants),
    Edits::Function(instructions::attributes, instructions::drop_attributes),
    Edits::Shader(interface::declarations, interface::drop_declarations),
];

/// A shader that was reduced.
#[derive(Debug, Clone)]
pub struct Reduction {
    /// The smallest one that is interesting.
    pub shader: Shader,
    /// The number of candidates that the predicate has seen.
    pub tries: usize,
    /// The number of candidates that were made, with those that the predicate has not seen.
    pub candidates: usize,
    /// The number of candidates that were interesting.
    pub accepted: usize,
    /// Whether it ended at the limit of tries.
    pub limited: bool,
}

/// The error of a reduction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError<E> {
    /// The original shader is not interesting.
    #[error("the original shader is not interesting")]
    NotInteresting,
    /// The predicate failed.
    #[error(transparent)]
    Predicate(E),
}

/// The most candidates that are made, for each try that is allowed. Those that are not valid, not lighter or already known are not tried.
pub const CANDIDATES_PER_TRY: usize = 100;

/// Reduces a valid shader. The predicate sees the shader itself first, then at most `tries` valid candidates; the last interesting one is
/// the result. Candidates that the predicate does not see are bounded, too, by [`CANDIDATES_PER_TRY`].
///
/// # Errors
/// If the shader is not interesting, or the predicate fails.
pub fn reduce<E>(
    shader: &Shader,
    tries: usize,
    mut interesting: impl FnMut(&Shader) -> Result<bool, E>,
) -> Result<Reduction, ReduceError<E>> {
    if !interesting(shader).map_err(ReduceError::Predicate)? {
        return Err(ReduceError::NotInteresting);
    }
    let mut reducer = Reducer {
        weight: weight::of(shader),
        best: shader.clone(),
        seen: HashSet::new(),
        tries: 0,
        candidates: 0,
        accepted: 0,
        most: tries,
        interesting,
    };
    let limited = match reducer.run() {
        Ok(()) => false,
        Err(Stop::Limit) => true,
        Err(Stop::Predicate(e)) => return Err(ReduceError::Predicate(e)),
    };
    let Reducer { best, tries, candidates, accepted, .. } = reducer;
    Ok(Reduction { shader: best, tries, candidates, accepted, limited })
}

/// What ends a reduction early.
enum Stop<E> {
    Limit,
    Predicate(E),
}

struct Reducer<P> {
    best: Shader,
    weight: u64,
    /// Hashes of the texts that the predicate has seen.
    seen: HashSet<u64>,
    tries: usize,
    /// Candidates that were made.
    candidates: usize,
    accepted: usize,
    most: usize,
    interesting: P,
}

impl<E, P: FnMut(&Shader) -> Result<bool, E>> Reducer<P> {
    fn run(&mut self) -> Result<(), Stop<E>> {
        loop {
            let before = self.weight;
            for step in STEPS {
                match step {
                    Edits::Function(sites, apply) => {
                        for func in 0..self.best.functions().len() {
                            let sites = sites(&self.best.functions()[func]);
                            self.groups(sites, |shader, sites| {
                                apply(&mut shader.functions_mut()[func], sites);
                            })?;
                        }
                    }
                    Edits::Shader(sites, apply) => self.groups(sites(&self.best), apply)?,
                }
            }
            if self.weight == before {
                return Ok(());
            }
        }
    }

    /// Tries groups of edits: all of them, then halves, down to single ones.
    fn groups(&mut self, mut sites: Vec<Site>, apply: impl Fn(&mut Shader, &[Site])) -> Result<(), Stop<E>> {
        let mut size = sites.len();
        while size > 0 {
            let mut at = 0;
            while at < sites.len() {
                let end = (at + size).min(sites.len());
                let mut candidate = self.best.clone();
                apply(&mut candidate, &sites[at..end]);
                if self.attempt(candidate)? {
                    sites.drain(at..end);
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        self.compact();
        Ok(())
    }

    /// Makes a candidate the best shader if it is valid, lighter and interesting.
    fn attempt(&mut self, candidate: Shader) -> Result<bool, Stop<E>> {
        if self.candidates >= self.most.saturating_mul(CANDIDATES_PER_TRY) {
            return Err(Stop::Limit);
        }
        self.candidates += 1;
        let weight = weight::of(&candidate);
        if weight >= self.weight || validate(&candidate).is_err() {
            return Ok(false);
        }
        let mut hasher = DefaultHasher::new();
        print(&candidate).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return Ok(false);
        }
        if self.tries >= self.most {
            return Err(Stop::Limit);
        }
        self.tries += 1;
        if !(self.interesting)(&candidate).map_err(Stop::Predicate)? {
            return Ok(false);
        }
        self.accepted += 1;
        (self.best, self.weight) = (candidate, weight);
        Ok(true)
    }

    /// Drops what edits left in the arenas, by printing and parsing the shader.
    fn compact(&mut self) {
        let mut shader = Shader::default();
        if parse(&print(&self.best), &mut shader).is_ok() {
            self.best = shader;
        }
    }
}
