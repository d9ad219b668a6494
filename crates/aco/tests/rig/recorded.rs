//! The recorded compute shaders: their results, the registers that Mesa's compiler passes arguments in, and a run of a compiled one. Also what is
//! measured of code, and its listings.

use super::TABLE;
use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_aco::abi::Argument;
use unwedge_aco::cost::estimate;
use unwedge_aco::occupancy::allocated_vgprs;
use unwedge_aco::{Compiled, Options};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::{Gpu, listing};
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::data;
use unwedge_testkit::pack::bytes;

/// What is compared with ACO.
pub const MEASURES: [&str; 5] = ["instructions", "code_size", "vgprs", "latency", "inverse_throughput"];

/// The measures of code. `invocations` are those of a workgroup, if they matter.
pub fn measures(compiled: &Compiled, gpu: &Gpu, invocations: Option<u32>) -> [f64; MEASURES.len()] {
    let code = &compiled.code;
    let vgprs = allocated_vgprs(gpu, code.registers);
    let cost = estimate(code, gpu, invocations);
    let size = code.words.len() * 4;
    [
        code.instructions as f64,
        size as f64,
        f64::from(vgprs),
        cost.latency as f64,
        cost.inverse_throughput as f64,
    ]
}

/// The assembly of compiled code.
pub fn assembly(compiled: &Compiled, gpu: &Gpu) -> String {
    let mut text = String::new();
    let options = listing::AmdListingOptions::default();
    listing::write(&bytes(&compiled.code.words), gpu, &options, &mut text, &mut |_, _| {});
    text
}

/// Writes the code to `DIR/CHIP/SHADER.s` if `UNWEDGE_LISTINGS=DIR` is set.
pub fn write_listing(chip: &str, shader: &str, compiled: &Compiled, gpu: &Gpu) {
    let Some(folder) = std::env::var_os("UNWEDGE_LISTINGS") else { return };
    let folder = PathBuf::from(folder).join(chip);
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(format!("{shader}.s")), assembly(compiled, gpu)))
        .expect("the folder of listings can be written");
}

/// By push constant: the words that the output holds.
pub type Results = Vec<(u32, Vec<u32>)>;

/// A problem with a shader: the step, and what is wrong.
pub type Problem = (&'static str, String);

fn dwords(hex: &str) -> Vec<u32> {
    let word = |at: usize| u32::from_str_radix(&hex[at * 8..at * 8 + 8], 16).expect("hexadecimal");
    (0..hex.len() / 8).map(word).collect()
}

/// Rows of a table, as the cells of some columns.
pub fn columns<const N: usize>(text: &str, names: [&str; N]) -> Vec<[String; N]> {
    let mut lines = text.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let places = names.map(|name| header.iter().position(|cell| cell == name).expect("a column"));
    lines.map(data::cells).map(|cells| places.map(|at| cells[at].clone())).collect()
}

/// Results by shader.
pub fn expected() -> Option<BTreeMap<String, Results>> {
    let text = data::text("adreno/compute/expected.csv.gz")?;
    let mut expected: BTreeMap<String, Results> = BTreeMap::new();
    for [name, push, words] in columns(&text, ["shader", "push_constant", "dst_words_hex"]) {
        expected.entry(name).or_default().push((push.parse().expect("a push constant"), dwords(&words)));
    }
    Some(expected)
}

/// Runs a compiled shader in plain and in adversarial timing.
fn execute(compiled: &Compiled, options: &Options, constant: u32, expected: &[u32]) -> Result<(), String> {
    let scalar = |argument: Argument| match argument {
        Argument::DescriptorSet(_) => Some(TABLE as u32),
        Argument::PushConstant(_) => Some(constant),
        _ => None,
    };
    for timing in [Timing::Plain, Timing::Adversarial { seed: u64::from(constant) }] {
        let name = if timing == Timing::Plain { "plain" } else { "adversarial" };
        let mut memory = super::memory(options, bytes(&data::compute_input()), expected.len() * 4);
        let dispatch =
            Dispatch { groups: [4, 1, 1], timing, ..super::dispatch(compiled, &options.gpu, scalar) };
        super::execute(&compiled.code, options.gpu, &mut memory, &dispatch)
            .map_err(|fault| format!("{name}: {fault}"))?;
        let words = super::output(&memory, expected.len());
        if let Some(at) = (0..expected.len()).find(|at| words[*at] != expected[*at]) {
            return Err(format!("{name}: word {at} is {:#x}, not {:#x}", words[at], expected[at]));
        }
    }
    Ok(())
}

/// Whether a compiled shader gives the recorded words and passes the checker.
pub fn judge(compiled: &Compiled, options: &Options, expected: &Results) -> Result<(), Problem> {
    let report = check_words(&compiled.code.words, &options.gpu, &CheckOptions::default());
    for (constant, words) in expected {
        execute(compiled, options, *constant, words).map_err(|what| ("run", what))?;
    }
    match report.findings.iter().find(|finding| finding.level != Certainty::Speed) {
        Some(finding) => Err(("check", format!("{finding:?}"))),
        None if report.complete => Ok(()),
        None => Err(("check", "the check is not complete".to_owned())),
    }
}
