//! Compiles the facts of `data/adreno`, `data/amd` and `data/intel` into the tables the library includes.

#[path = "build/adreno/mod.rs"]
mod adreno;
#[path = "src/compile.rs"]
mod compile;
#[path = "build/intel/mod.rs"]
mod intel;
#[allow(dead_code, reason = "what only the reader of the tables needs")]
#[path = "src/layout.rs"]
mod layout;
#[path = "src/link.rs"]
mod link;
#[path = "src/model.rs"]
mod model;
#[path = "src/outline.rs"]
mod outline;
#[path = "src/place.rs"]
mod place;
#[path = "src/text.rs"]
mod text;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const GFX_SPACES: &[(&str, &[&str])] = &[("gfx", &["GFX"]), ("status", &["STATUS"])];

/// AMD gfx6 to gfx12.
const AMD: compile::Family = compile::Family {
    generations: &[
        gfx("GFX6"),
        gfx("GFX7"),
        gfx("GFX8"),
        gfx("GFX9"),
        gfx("GFX940"),
        gfx("GFX10"),
        gfx("GFX103"),
        gfx("GFX11"),
        gfx("GFX115"),
        gfx("GFX12"),
    ],
    packets: "pm4_opcode",
};

const fn gfx(variant: &'static str) -> compile::FamilyMember {
    compile::FamilyMember { variant, spaces: GFX_SPACES, beside: &["pm4", "sdma", "media", "faults"] }
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data");
    let out = env::var("OUT_DIR")?;
    for module in [
        "compile",
        "intel/engine_class",
        "intel/layout",
        "layout",
        "link",
        "model",
        "outline",
        "place",
        "text",
    ] {
        println!("cargo::rerun-if-changed=src/{module}.rs");
    }
    println!("cargo::rerun-if-changed=build/adreno");
    println!("cargo::rerun-if-changed=build/intel");
    println!("cargo::rerun-if-changed={}", data.display());
    let facts = family("adreno", &compile::ADRENO, &data, Path::new(&out))?;
    adreno_formats(&data.join("adreno/formats.txt"), &facts, Path::new(&out))?;
    family("amd", &AMD, &data, Path::new(&out))?;
    let products = data.join("amd/amd.products");
    let list = amd_products(&read(&products)?).map_err(|e| format!("{}:{e}", products.display()))?;
    fs::write(Path::new(&out).join("amd_products.rs"), list)?;
    intel_tables(&data.join("intel"), Path::new(&out))
}

/// The tables of one vendor, from the files of its folder and what those of `additions` add to them.
fn family(
    vendor: &str,
    family: &compile::Family,
    data: &Path,
    out: &Path,
) -> Result<model::DbFacts, Box<dyn Error>> {
    let root = &data.join(vendor);
    let mut facts =
        model::DbFacts { version: read(&root.join("version"))?.trim().to_string(), ..Default::default() };
    for (name, path) in files(root, "regs")? {
        facts.files.push(text::read_file(&name, &read(&path)?)?);
    }
    let additions = &root.join("additions");
    for (name, path) in files(additions, "regs")? {
        facts.add(text::read_file(&name, &read(&path)?)?);
    }
    // Of devices that fit a chip the first counts.
    for (name, path) in files(additions, "devices")?.into_iter().chain(files(root, "devices")?) {
        facts.devices.extend(text::read_devices(&name, &read(&path)?)?);
    }
    let tables = compile::compile(&facts, family);
    for issue in &tables.issues {
        println!("cargo::warning=data/{vendor}: {issue}");
    }
    fs::write(out.join(format!("{vendor}.words")), &tables.words)?;
    fs::write(out.join(format!("{vendor}.strings")), &tables.strings)?;
    Ok(facts)
}

/// Formats of texels, whose numbers are in the register tables.
fn adreno_formats(path: &Path, facts: &model::DbFacts, out: &Path) -> Result<(), Box<dyn Error>> {
    let enums = adreno::formats::HardwareEnums::of(&facts.files);
    let rows =
        adreno::formats::compile(&read(path)?, &enums).map_err(|e| format!("{}:{e}", path.display()))?;
    fs::write(out.join("adreno_formats.rs"), rows)?;
    fs::write(out.join("srgb.rs"), adreno::formats::srgb_tables())?;
    Ok(())
}

/// The source of the list of names that AMD's chips are sold under, by PCI device id and revision. A line is the device id, its
/// revisions and the name: `163f ae,e1 AMD Custom GPU 0405`.
fn amd_products(text: &str) -> Result<String, String> {
    let mut rows = std::collections::BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
    {
        let place = at + 1;
        let row = || {
            let (device, rest) = line.split_once(' ')?;
            let (revisions, name) = rest.split_once(' ')?;
            let revisions: Option<Vec<u8>> =
                revisions.split(',').map(|revision| u8::from_str_radix(revision, 16).ok()).collect();
            Some((u16::from_str_radix(device, 16).ok()?, revisions?, name))
        };
        let (device, revisions, name) = row().ok_or_else(|| format!("{place}: no product: {line}"))?;
        for revision in revisions {
            if rows.insert((device, revision), name).is_some() {
                return Err(format!("{place}: {device:04x}:{revision:02x} twice"));
            }
        }
    }
    let rows: String = rows
        .iter()
        .map(|((device, revision), name)| format!("    ({device:#06x}, {revision:#04x}, {name:?}),\n"))
        .collect();
    Ok(format!(
        "/// PCI device id, revision and name, sorted.\nstatic PRODUCTS: &[(u16, u8, &str)] = &[\n{rows}];\n"
    ))
}

fn intel_tables(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut list = Vec::new();
    for (name, path) in files(root, "cmds")? {
        list.push(intel::text::read_file(&name, &read(&path)?)?);
    }
    let tables =
        intel::compile::compile(&list).map_err(|errors| format!("data/intel:\n{}", errors.join("\n")))?;
    fs::write(out.join("intel.words"), &tables.words)?;
    fs::write(out.join("intel.strings"), &tables.strings)?;
    let platforms = read(&root.join("platforms"))?;
    let platforms =
        intel::platforms::compile(&platforms).map_err(|e| format!("data/intel/platforms: {e}"))?;
    fs::write(out.join("intel_platforms.rs"), platforms)?;
    Ok(())
}

/// The files of a folder with this extension, by name.
fn files(root: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let mut list = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            list.push((name, path));
        }
    }
    list.sort();
    Ok(list)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
