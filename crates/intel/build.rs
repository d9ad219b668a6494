//! Compiles the facts of `data/intel` on contexts into Rust the library includes.

#[allow(dead_code, reason = "what only the library needs")]
#[path = "src/lrc/encoding.rs"]
mod encoding;
#[path = "build_support/facts.rs"]
mod facts;
#[path = "build_support/registers.rs"]
mod registers;
#[allow(dead_code, reason = "what only the library needs")]
#[path = "src/lrc/text.rs"]
mod text;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data/intel");
    let out = env::var("OUT_DIR")?;
    for watched in ["build_support", "src/lrc/encoding.rs", "src/lrc/text.rs"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let read = |name: &str| {
        let path = data.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let in_file = |name: &'static str| move |e: String| format!("data/intel/{name}: {e}");
    let registers =
        registers::read(&read("lrc.registers")?).map_err(|e| format!("data/intel/lrc.registers: {e}"))?;
    let tables = text::parse(&read("lrc.tables")?, &|name| registers::lookup(&registers, name))
        .map_err(|e| format!("data/intel/lrc.tables: {e}"))?;
    let layouts =
        facts::layouts(&read("lrc.layouts")?, &tables, &registers).map_err(in_file("lrc.layouts"))?;
    fs::write(Path::new(&out).join("lrc.rs"), layouts + &registers::emit(&registers))?;
    Ok(())
}
