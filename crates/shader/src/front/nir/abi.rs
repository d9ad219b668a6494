//! What the arguments of a shader mean: final NIR for AMD names them by number alone.

use super::error::{Result, invalid};
use crate::ir::AmdRegisters;

/// The most arguments that are read: GPUs do not have registers for more.
pub(super) const MAX_ARGUMENTS: usize = 256;
/// The address of the table of ray-tracing shaders: an intrinsic of its own, which names no argument, and the number that it has here.
pub(super) const LOAD_RAY_TABLE: &str = "load_sbt_base_amd";
pub(super) const RAY_TABLE: u64 = MAX_ARGUMENTS as u64 - 1;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// The low word of the address of a descriptor set.
    DescriptorSet(u32),
    /// A word of the push constants, at an offset in bytes.
    Push(u32),
    /// A component of the invocation in its workgroup.
    LocalId(u8),
    /// All three components, ten bits each.
    LocalIdsPacked,
    /// What registers hold, whatever that is.
    Register(AmdRegisters),
    /// Anything else. A shader that reads it is refused.
    Other,
}

/// What the arguments of a shader mean, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(pub Vec<Argument>);

impl Arguments {
    /// The argument with a number.
    pub fn get(&self, number: u64) -> Argument {
        usize::try_from(number).ok().and_then(|at| self.0.get(at).copied()).unwrap_or(Argument::Other)
    }

    /// From a list of registers: `local_id_x=v0:1 push0=s3:1 arg0=s0:2 arg1=s2:1 arg2=s3:1 arg3=v0:1`. `argN` says where argument N is,
    /// other names say what a register holds. A scalar argument of one word that has no other name is the address of
    /// the next descriptor set.
    ///
    /// # Errors
    /// When a word of the list has another form.
    pub fn parse(list: &str) -> std::result::Result<Arguments, super::NirError> {
        arguments(list).map_err(|cause| cause.at(0))
    }
}

fn arguments(list: &str) -> Result<Arguments> {
    let mut names = Vec::new();
    let mut places = Vec::new();
    for word in list.split_whitespace() {
        let Some((name, place)) = word.split_once('=') else {
            return invalid(format!("{word:?} is not NAME=REGISTER:WORDS"));
        };
        match name.strip_prefix("arg").map(str::parse::<usize>) {
            Some(Ok(number)) if number == places.len() => places.push(place),
            Some(_) => return invalid(format!("argument {name} is not in order")),
            None => names.push((name, place)),
        }
    }
    let mut sets = 0;
    let mut meaning = |place: &str| {
        let Some((name, _)) = names.iter().find(|(_, named)| *named == place) else {
            let is_set = place.starts_with('s') && place.ends_with(":1");
            sets += u32::from(is_set);
            return if is_set { Argument::DescriptorSet(sets - 1) } else { Argument::Other };
        };
        match (*name, name.strip_prefix("push").map(str::parse::<u32>)) {
            ("local_id_x", _) => Argument::LocalId(0),
            ("local_id_y", _) => Argument::LocalId(1),
            ("local_id_z", _) => Argument::LocalId(2),
            ("local_ids_packed", _) => Argument::LocalIdsPacked,
            (_, Some(Ok(word))) if word < 1 << 16 => Argument::Push(4 * word),
            _ => Argument::Other,
        }
    };
    Ok(Arguments(places.iter().map(|place| meaning(place)).collect()))
}
