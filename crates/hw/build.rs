//! Compiles the register facts of `data/adreno` into the tables the library includes.

#[path = "src/compile.rs"]
mod compile;
#[allow(dead_code, reason = "what only the reader of the tables needs")]
#[path = "src/layout.rs"]
mod layout;
#[path = "src/link.rs"]
mod link;
#[path = "src/model.rs"]
mod model;
#[path = "src/place.rs"]
mod place;
#[path = "src/text.rs"]
mod text;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../data/adreno");
    println!("cargo::rerun-if-changed={}", root.display());
    for module in ["compile", "layout", "link", "model", "place", "text"] {
        println!("cargo::rerun-if-changed=src/{module}.rs");
    }
    let mut paths: Vec<_> = fs::read_dir(&root)?.collect::<Result<Vec<_>, _>>()?;
    paths.sort_by_key(|entry| entry.file_name());
    let mut facts =
        model::Facts { version: read(&root.join("version"))?.trim().to_string(), ..Default::default() };
    for path in paths.iter().map(|entry| entry.path()) {
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        match path.extension().and_then(|e| e.to_str()) {
            Some("regs") => facts.files.push(text::read_file(&name, &read(&path)?)?),
            Some("devices") => facts.devices.extend(text::read_devices(&name, &read(&path)?)?),
            _ => {}
        }
    }
    let tables = compile::compile(&facts);
    for issue in &tables.issues {
        println!("cargo::warning=data/adreno: {issue}");
    }
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("adreno.words"), &tables.words)?;
    fs::write(Path::new(&out).join("adreno.strings"), &tables.strings)?;
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
