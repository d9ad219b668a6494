//! The options of `unwedge ir3`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use unwedge_view::value::address;

/// `ir3`
#[derive(Args, Debug)]
pub struct Ir3 {
    /// What to do.
    #[command(subcommand)]
    pub command: Ir3Command,
}

/// The commands of `ir3`.
#[derive(Debug, Subcommand)]
pub enum Ir3Command {
    /// Words to text
    #[command(after_help = concat!(
        "Examples:\n  unwedge ir3 disasm --gen 6 shader.bin\n  unwedge ir3 disasm crash.devcore --shader 0\n  \
        echo 4210000000000000 | unwedge ir3 disasm --gen 6 --hex -",
        hex_help!()
    ))]
    Disasm(Ir3Disasm),
    /// Text to words
    Asm(Ir3Asm),
    /// Instructions, nops, registers, constants, syncs and stalls of a shader
    Stats(Ir3Stats),
    /// What is wrong with code: missing (ss), (sy), (jp) and nops, registers, branches
    #[command(
        after_help = "Nothing is run. docs/ir3-check.md has the rules. Exit status 4: something is wrong.\n\n\
            Examples:\n  unwedge ir3 check --gpu a630 shader.bin\n  unwedge ir3 check crash.devcore --shader-at 0x100020000\n  \
            unwedge ir3 check --gpu a740 --inputs r0.x-r0.z,r48.x-r48.z --all --json shader.bin"
    )]
    Check(Ir3Check),
}

/// `ir3 check`
#[derive(Args, Debug)]
pub struct Ir3Check {
    /// The shader (64-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// GPU (a630, a740) or generation (3 to 7); a dump names its own
    #[arg(long, visible_alias = "gen", value_name = "GPU", value_parser = ir3_gpu)]
    pub gpu: Option<u32>,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub shader_at: Option<u64>,
    /// Registers that the program starts with; others must be written before they are read
    #[arg(long, value_name = "REGISTERS", value_parser = unwedge_view::asm::ir3_check::registers, value_delimiter = ',')]
    pub inputs: Option<Vec<Vec<unwedge::check::ir3::Register>>>,
    /// Constants that are loaded, in vectors of four components
    #[arg(long, value_name = "COUNT")]
    pub constlen: Option<u16>,
    /// Also notes: flags and nops that are redundant, code that is not reached
    #[arg(long)]
    pub all: bool,
    /// Findings of this level count as wrong, too: warning, note
    #[arg(long, value_name = "LEVEL", value_parser = unwedge_view::asm::level_of, default_value = "error")]
    pub deny: unwedge::check::ir3::Level,
    /// One JSON object, whose schema is in docs/json-schema.md
    #[arg(long)]
    pub json: bool,
}

/// `ir3 stats`
#[derive(Args, Debug)]
pub struct Ir3Stats {
    /// The shader (64-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630: from a6xx on, the maximum of waves is printed, too); a dump names its own
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: Option<u32>,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub shader_at: Option<u64>,
}

/// `ir3 disasm`
#[derive(Args, Debug)]
pub struct Ir3Disasm {
    /// The shader (64-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630); a dump names its own
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: Option<u32>,
    /// A hexadecimal 64-bit word per line; prints one line for each, `error: …` where that is not possible
    #[arg(long)]
    pub hex: bool,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "hex")]
    pub shader_at: Option<u64>,
    /// The shader of this number of a dump of msm, as they are listed without this option
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["hex", "shader_at"])]
    pub shader: Option<usize>,
    /// List up to the shader's end as crashdec does, with labels, the words and where they are
    #[arg(long, conflicts_with = "hex")]
    pub raw: bool,
}

/// `ir3 asm`
#[derive(Args, Debug)]
pub struct Ir3Asm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630)
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: u32,
    /// An instruction per line; prints one hexadecimal 64-bit word for each, `error: …` where that is not possible
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the words (little-endian) here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `6` or `630`: the number of a GPU.
fn ir3_gpu(text: &str) -> Result<u32, String> {
    match text.trim_start_matches(['a', 'A']).parse::<u32>() {
        Ok(generation @ 3..=7) => Ok(100 * generation),
        Ok(gpu @ 300..=799) => Ok(gpu),
        _ => Err("expected a generation from 3 to 7 or a GPU such as 630".to_owned()),
    }
}
