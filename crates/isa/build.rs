//! Compiles the instruction sets of `data/*/isa` into the tables the library includes.

#[allow(dead_code, reason = "what only the reader of the tables needs")]
#[path = "src/table"]
mod table {
    pub mod compile;
    pub mod emit;
    pub mod expr;
    pub mod model;
    pub mod rows;
    pub mod text;
    pub mod tree;
}

use std::error::Error;
use std::path::Path;
use std::{env, fs};
use table::{compile, emit, text};

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../data");
    let out = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=src/table");
    for (folder, name) in [("adreno", "ir3"), ("adreno", "afuc")] {
        let path = data.join(folder).join("isa").join(format!("{name}.isa"));
        println!("cargo::rerun-if-changed={}", path.display());
        let shown = path.display();
        let source = fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        let isa = text::read(&source).map_err(|e| format!("{shown}: {e}"))?;
        let rows = compile::compile(&isa).map_err(|e| format!("{shown}: {e}"))?;
        let source = emit::emit(&name.to_uppercase(), &rows);
        fs::write(Path::new(&out).join(format!("{name}.rs")), source)?;
    }
    Ok(())
}
