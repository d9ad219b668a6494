//! Makes the list of GPUs of `amd.devices`, the chips that `unwedge_hw` knows, under the names that LLVM has for them.

use crate::table_text::lines;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use unwedge_base::GfxTarget;

/// The source of the list, by version. Files are of the same format; an earlier one's names come first.
pub fn compile(files: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut gpus: BTreeMap<[u8; 3], Vec<String>> = BTreeMap::new();
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let source = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        for (line, text) in lines(&source) {
            let (name, version) = device(text).ok_or_else(|| format!("{}:{line}: {text}", path.display()))?;
            gpus.entry(version).or_default().push(name.to_lowercase());
        }
    }
    let mut out = String::from("static GPUS: &[Processor] = &[\n");
    for (version, chips) in &mut gpus {
        let [major, minor, stepping] = *version;
        let target = GfxTarget { major, minor, stepping };
        let generation = target.generation().ok_or_else(|| format!("no generation has {target}"))?;
        let name = target.to_string();
        chips.retain(|chip| *chip != name);
        writeln!(
            out,
            "Processor {{ version: {version:?}, name: {name:?}, chips: &{chips:?}, generation: Gfx::{generation:?} }},"
        )?;
    }
    out.push_str("];\n");
    Ok(out)
}

/// Name and version of the graphics core: `device NAVI21 gfx=10.3.0`.
fn device(text: &str) -> Option<(&str, [u8; 3])> {
    let mut words = text.strip_prefix("device ")?.split_whitespace();
    let name = words.next()?;
    let mut version =
        words.find_map(|word| word.strip_prefix("gfx="))?.split('.').map(|part| part.parse().ok());
    let version = [version.next()??, version.next()??, version.next()??];
    Some((name, version))
}
