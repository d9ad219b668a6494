//! Checks of what holds of every shader, and of every broken form of one. The error of a check shows what does not hold.
//!
//! Tests, campaigns and fuzzing use them. Never: a panic of their own.

use super::generator::{Dialect, random};
use super::run::{NotComparable, Observed, Setup, observe, same};
use super::spirv;
use super::stages::random_stage;
use crate::mutate::{Mutation, Rng};
use unwedge_shader::front::nir;
use unwedge_shader::front::spirv::{Options, Reader};
use unwedge_shader::interp::RunError;
use unwedge_shader::ir::{Function, Inst, Op, Shader};
use unwedge_shader::passes::{PASSES, Pass, lower_io, lower_locals, lower_outputs, standard};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

/// The most steps of a run before passes.
const STEPS: u64 = 25_000;

/// By which factor a run after a pass may take more: lowered divisions and reductions are loops.
const MORE_STEPS: u64 = 4096;

/// The most steps of a run of a broken shader.
const FEW_STEPS: u64 = 2_000;

/// The most instructions of a module.
const MAX_INSTS: usize = 1 << 15;

/// The most variables, and elements of one, of a broken shader that is run.
const MAX_VARS: usize = 1 << 10;

/// Each pass, and the standard passes together.
pub fn passes() -> impl Iterator<Item = Pass> {
    PASSES.iter().copied().chain([Pass { name: "standard", summary: "", run: standard, standard: true }])
}

/// How the random shader of a seed is run.
pub fn setup(seed: u64) -> Setup {
    Setup { seed, subgroup_size: [4, 8, 32][(seed % 3) as usize], steps: STEPS }
}

fn valid(shader: &Shader, after: &str) -> Result<(), String> {
    validate(shader).map_err(|e| format!("{after}: {e}\n{}", print(shader)))
}

/// Runs a shader; `None` if there is nothing to compare.
fn comparable(shader: &Shader, setup: &Setup) -> Result<Option<Observed>, String> {
    match observe(shader, setup) {
        Ok(observed) => Ok(Some(observed)),
        Err(NotComparable::Undefined(_) | NotComparable::Error(RunError::Steps(_))) => Ok(None),
        Err(NotComparable::Error(e)) => Err(format!("{e}\n{}", print(shader))),
    }
}

/// Whether passes keep a shader valid, and its observable behaviour: each on its own, and the standard ones together. `false` if there is
/// nothing to compare.
///
/// # Errors
/// What differs, with the shader before and after.
pub fn keeps_behaviour(shader: &Shader, setup: &Setup) -> Result<bool, String> {
    valid(shader, "before")?;
    let Some(before) = comparable(shader, setup)? else { return Ok(false) };
    for pass in passes() {
        let mut changed = shader.clone();
        (pass.run)(&mut changed);
        let texts = || format!("{}\nbefore:\n{}", print(&changed), print(shader));
        validate(&changed).map_err(|e| format!("{}: {e}\n{}", pass.name, texts()))?;
        let after = observe(&changed, &Setup { steps: MORE_STEPS * setup.steps, ..*setup })
            .map_err(|e| format!("{}: {e:?}\n{}", pass.name, texts()))?;
        if !same(&before, &after) {
            return Err(format!("{}: the results differ\n{}", pass.name, texts()));
        }
    }
    Ok(true)
}

/// Whether the random shader of a seed keeps its behaviour. `false` if there is nothing to compare.
///
/// # Errors
/// What differs.
pub fn random_shader(seed: u64) -> Result<bool, String> {
    keeps_behaviour(&random(&mut Rng::new(seed), Dialect::Full), &setup(seed))
}

/// Whether the random shader of a graphics stage keeps its behaviour: after each pass, and after `lower-io` and then the standard passes,
/// with or without local variables in place of outputs. `false` if there is nothing to compare.
///
/// # Errors
/// What differs.
pub fn random_graphics(seed: u64) -> Result<bool, String> {
    let shader = random_stage(&mut Rng::new(seed));
    let setup = Setup { subgroup_size: 4, ..setup(seed) };
    if !keeps_behaviour(&shader, &setup)? {
        return Ok(false);
    }
    let Some(before) = comparable(&shader, &setup)? else { return Ok(false) };
    for local in [false, true] {
        let mut shader = shader.clone();
        if local {
            lower_outputs(&mut shader);
            valid(&shader, "local outputs")?;
        }
        lower_io(&mut shader);
        standard(&mut shader);
        if local {
            lower_locals(&mut shader);
        }
        valid(&shader, "slots and standard passes")?;
        let left =
            |func: &Function, inst: Inst| matches!(func.op(inst), Op::LoadVar | Op::StoreVar | Op::InterpVar);
        if shader.functions().iter().any(|func| func.walk().any(|inst| left(func, inst))) {
            return Err(format!("variables are left\n{}", print(&shader)));
        }
        match comparable(&shader, &setup)? {
            Some(after) if same(&before, &after) => {}
            _ => return Err(format!("slots and standard passes: the results differ\n{}", print(&shader))),
        }
    }
    Ok(true)
}

/// Whether the random shader of a seed keeps its behaviour when it is printed and parsed as text, and written and read as SPIR-V. `false`
/// if there is nothing to compare.
///
/// # Errors
/// What differs.
pub fn random_forms(seed: u64) -> Result<bool, String> {
    let shader = random(&mut Rng::new(seed), Dialect::Spirv);
    valid(&shader, "before")?;
    let text = print(&shader);
    let mut parsed = Shader::default();
    parse(&text, &mut parsed).map_err(|e| format!("{e}\n{text}"))?;
    if print(&parsed) != text {
        return Err(format!("text differs after parsing:\n{}\nbefore:\n{text}", print(&parsed)));
    }
    let Some(before) = comparable(&parsed, &setup(seed))? else { return Ok(false) };
    let words = spirv::module(&shader);
    let mut read = Shader::default();
    let result = Reader::default().read(&words, &Options::default(), &mut read);
    result.map_err(|e| format!("{e}\n{text}"))?;
    valid(&read, "SPIR-V")?;
    let texts = || format!("{}\nbefore:\n{text}", print(&read));
    if read.info.float_modes != shader.info.float_modes {
        return Err(format!("float modes differ\n{}", texts()));
    }
    let after = observe(&read, &Setup { steps: 4 * STEPS, ..setup(seed) });
    let after = after.map_err(|e| format!("SPIR-V: {e:?}\n{}", texts()))?;
    if same_buffers(&before, &after) {
        Ok(true)
    } else {
        Err(format!("SPIR-V: the results differ\n{}", texts()))
    }
}

/// Whether buffers that both shaders bind hold the same.
fn same_buffers(before: &Observed, after: &Observed) -> bool {
    after.memory.iter().all(|(point, bytes)| before.memory.get(point).is_none_or(|other| other == bytes))
}

/// What became of a broken input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is refused.
    Refused,
    /// It is a valid shader, and everything works on it.
    Valid,
}

/// Whether a valid shader survives everything: its text is read back, passes keep it valid, and it runs.
fn survives(shader: &Shader) -> Result<(), String> {
    let text = print(shader);
    let mut parsed = Shader::default();
    parse(&text, &mut parsed).map_err(|e| format!("{e}\n{text}"))?;
    valid(&parsed, "parsed")?;
    if print(&parsed) != text {
        return Err(format!("text differs after parsing:\n{}\nbefore:\n{text}", print(&parsed)));
    }
    for pass in passes() {
        let mut changed = shader.clone();
        (pass.run)(&mut changed);
        validate(&changed)
            .map_err(|e| format!("{}: {e}\n{}\nbefore:\n{text}", pass.name, print(&changed)))?;
    }
    if shader.vars.len() <= MAX_VARS {
        // It may be undefined, or not run to its end.
        let _ = observe(shader, &Setup { seed: 1, subgroup_size: 8, steps: FEW_STEPS });
    }
    Ok(())
}

/// Reads words as a SPIR-V module. What is read must be valid and survive everything.
///
/// # Errors
/// What does not hold.
pub fn broken_spirv(words: &[u32], reader: &mut Reader, shader: &mut Shader) -> Result<Outcome, String> {
    let options = Options { max_insts: MAX_INSTS, ..Options::default() };
    if reader.read(words, &options, shader).is_err() {
        return Ok(Outcome::Refused);
    }
    valid(shader, "SPIR-V")?;
    survives(shader).map(|()| Outcome::Valid)
}

/// Parses a text as a shader. If it is valid it must survive everything.
///
/// # Errors
/// What does not hold.
pub fn broken_text(text: &str, shader: &mut Shader) -> Result<Outcome, String> {
    if parse(text, shader).is_err() {
        return Ok(Outcome::Refused);
    }
    if validate(shader).is_err() {
        // It can be printed nevertheless.
        let _ = print(shader);
        return Ok(Outcome::Refused);
    }
    survives(shader).map(|()| Outcome::Valid)
}

/// What the arguments of [`NIR`] mean.
pub fn nir_options() -> nir::Options {
    let arguments = "ring_offsets=s0:2 arg0=s0:2 arg1=s2:1 push0=s3:1 local_id_x=v0:1 arg2=s3:1 arg3=v0:1";
    nir::Options { arguments: nir::Arguments::parse(arguments).unwrap_or_default(), file: String::new() }
}

/// Reads a text as NIR. What is read must be valid and survive everything.
///
/// # Errors
/// What does not hold.
pub fn broken_nir(text: &str, options: &nir::Options, shader: &mut Shader) -> Result<Outcome, String> {
    if nir::read(text, options, shader).is_err() {
        return Ok(Outcome::Refused);
    }
    valid(shader, "NIR")?;
    survives(shader).map(|()| Outcome::Valid)
}

/// A shader as Mesa prints it, with a loop, an `if`, phis, memory and arithmetic.
pub const NIR: &str = include_str!("sample.nir");

/// Numbers at the edges of their range, or special in a module.
const NUMBERS: [u32; 8] = [0, 1, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// Where the instructions of a module start.
fn instructions(words: &[u32]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 5;
    while at < words.len() {
        starts.push(at);
        at += ((words[at] >> 16) as usize).max(1);
    }
    starts
}

/// Breaks a module in one to four ways.
pub fn break_words(words: &mut Vec<u32>, rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        let starts = instructions(words);
        if words.is_empty() || starts.is_empty() {
            return;
        }
        let at = rng.below(words.len());
        let nth = rng.below(starts.len());
        let start = starts[nth];
        let end = starts.get(nth + 1).copied().unwrap_or(words.len());
        match rng.below(12) {
            0 => words[at] = words[rng.below(words.len())],
            1 => words[at] ^= 1 << rng.below(32),
            2 => words[at] = words[at].wrapping_add(1),
            3 => words[at] = words[at].wrapping_sub(1),
            4 => words[at] = NUMBERS[rng.below(NUMBERS.len())],
            5 => drop(words.drain(start..end)),
            6 => {
                let inst = words[start..end].to_vec();
                let to = starts[rng.below(starts.len())];
                words.splice(to..to, inst);
            }
            7 => {
                // Another instruction of the same length.
                let other = words[starts[rng.below(starts.len())]];
                words[start] = words[start] & 0xffff_0000 | other & 0xffff;
            }
            8 => words[start] = words[start] & 0xffff_0000 | rng.below(400) as u32,
            9 if rng.below(4) == 0 => words.truncate(at),
            _ if end > start + 1 => {
                // An operand becomes another id.
                let at = start + 1 + rng.below(end - start - 1);
                words[at] = rng.below(words[3].min(1 << 16) as usize + 1) as u32;
            }
            _ => {}
        }
    }
}

/// Breaks a text in one to three ways.
pub fn break_text(text: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=rng.below(3) {
        if rng.below(2) == 0 {
            let mutation = Mutation::ALL[rng.below(Mutation::ALL.len())];
            bytes = mutation.apply(&bytes, rng);
        } else {
            exchange_tokens(&mut bytes, rng);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A word of the text becomes another word of it.
fn exchange_tokens(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'%' | b'.');
    let mut tokens = Vec::new();
    let mut at = 0;
    for token in bytes.split(|byte| !is_word(byte)) {
        if !token.is_empty() {
            tokens.push(at..at + token.len());
        }
        at += token.len() + 1;
    }
    let (Some(from), Some(to)) = (rng.pick(&tokens).cloned(), rng.pick(&tokens).cloned()) else { return };
    let token = bytes[from].to_vec();
    bytes.splice(to, token);
}
