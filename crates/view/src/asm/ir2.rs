//! Sources of ir2 assembled.

use super::SourceErrors;
use unwedge_isa::ir2::assemble;

/// The words of a source, the lowest byte first; with `hex` in hexadecimal, one to a line.
///
/// # Errors
/// When the source has errors: all of them.
pub fn assembled(source: &str, hex: bool) -> Result<Vec<u8>, SourceErrors> {
    let words = assemble(source).map_err(|errors| {
        let count = errors.len();
        SourceErrors::of(source, errors.into_iter().map(|e| (e.line, e.column, e.message)), count)
    })?;
    Ok(if hex {
        words.iter().map(|word| format!("{word:08x}\n")).collect::<String>().into_bytes()
    } else {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    })
}
