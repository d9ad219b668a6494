//! Compiles the instruction sets of `data/*/isa`, `data/amd` and `data/intel/eu` into the tables the library includes.

#[path = "build_support/amdgcn/mod.rs"]
mod amdgcn;
#[allow(dead_code, reason = "what only the library needs")]
#[path = "src/amdgcn"]
mod amdgcn_facts {
    pub mod model;
    pub mod regs;
}
#[path = "build_support/emit.rs"]
mod emit;
#[path = "build_support/eu.rs"]
mod eu;
#[path = "src/eu/key.rs"]
mod eu_key;
#[path = "build_support/ir3.rs"]
mod ir3;
#[allow(dead_code, unused_imports, reason = "what only users of a table need")]
#[path = "src/table/mod.rs"]
mod table;
#[path = "build_support/table_text.rs"]
mod table_text;

use std::error::Error;
use std::path::Path;
use std::{env, fs};
use table::program::OwnedPrograms;
use table::{OwnedTable, text};

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data");
    let out = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=src/table");
    println!("cargo::rerun-if-changed=build_support");
    println!("cargo::rerun-if-changed=src/eu/key.rs");
    println!("cargo::rerun-if-changed=src/amdgcn/model.rs");
    println!("cargo::rerun-if-changed=src/amdgcn/model");
    println!("cargo::rerun-if-changed=src/amdgcn/regs.rs");
    amdgcn::compile(&data.join("amd"), Path::new(&out))?;
    eu::compile(&data.join("intel/eu"), Path::new(&out))?;
    for (folder, name, programs) in [("adreno", "ir3", true), ("adreno", "afuc", false)] {
        let path = data.join(folder).join("isa").join(format!("{name}.isa"));
        println!("cargo::rerun-if-changed={}", path.display());
        let shown = path.display();
        let source = fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        let isa = text::read(&source).map_err(|e| format!("{shown}: {e}"))?;
        let table = OwnedTable::new(&isa).map_err(|e| format!("{shown}: {e}"))?;
        let out = Path::new(&out);
        fs::write(out.join(format!("{name}.rs")), emit::emit(&name.to_uppercase(), &table))?;
        if programs {
            let table = table.table();
            let opcodes = ir3::emit(&table).ok_or("no instructions")?;
            fs::write(out.join(format!("{name}_opcodes.rs")), opcodes)?;
            let root = table.root("instruction").ok_or("no instructions")?;
            let programs = OwnedPrograms::new(&table, root).ok_or("instructions of more than 64 bits")?;
            let texts = format!("{name}.texts");
            fs::write(
                out.join(format!("{name}_programs.rs")),
                emit::programs("PROGRAMS", &texts, &programs),
            )?;
            fs::write(out.join(texts), programs.texts.concat())?;
        }
    }
    Ok(())
}
