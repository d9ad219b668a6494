//! `import-rnndb`: writes `data/adreno` from the register database of a Mesa or kernel tree.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use unwedge_hw::model::{DbFacts, DeviceRow};
use unwedge_hw::{rnndb, text, text_writer};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: cargo xtask import-rnndb DIR [--devices CSV] [--version VERSION]";

/// `DIR` holds `adreno/a6xx.xml` or `a6xx.xml`. What cannot be expressed is printed. Without `--version` the version is unknown;
/// without `--devices` the device table stays.
pub fn run(args: &[String]) -> Result<()> {
    let mut dir = None;
    let (mut devices, mut version) = (None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--devices" => devices = Some(args.next().ok_or(USAGE)?),
            "--version" => version = Some(args.next().ok_or(USAGE)?),
            _ if dir.is_none() => dir = Some(PathBuf::from(arg)),
            _ => return Err(USAGE.into()),
        }
    }
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/adreno");
    write(&dir.ok_or(USAGE)?, devices.map(Path::new), version.map_or("", String::as_str), &out)
}

/// Writes the files of `out` from a tree. Its folder `additions` stays as it is: nothing there comes from a tree.
fn write(dir: &Path, devices: Option<&Path>, version: &str, out: &Path) -> Result<()> {
    fs::create_dir_all(out)?;
    let (facts, issues) = rnndb::import(&mut |name| fs::read(dir.join(name)).ok())?;
    for issue in &issues {
        println!("{issue}");
    }
    for file in &facts.files {
        fs::write(out.join(format!("{}.regs", file.name)), text_writer::write_file(file))?;
    }
    if let Some(csv) = devices {
        let rows = device_rows(&fs::read_to_string(csv)?)?;
        fs::write(out.join("adreno.devices"), text_writer::write_devices(&rows))?;
    }
    // Facts of another tree are not of the version they replace.
    fs::write(out.join("version"), format!("{version}\n"))?;
    let lines: usize = facts.files.iter().map(|f| text_writer::write_file(f).lines().count()).sum();
    println!("{} files, {lines} lines; {} facts could not be expressed", facts.files.len(), issues.len());
    check(&facts, out)
}

/// What was written reads back as the same facts.
fn check(facts: &DbFacts, out: &Path) -> Result<()> {
    for file in &facts.files {
        let path = out.join(format!("{}.regs", file.name));
        let back = text::read_file(&file.name, &fs::read_to_string(&path)?)?;
        if back != *file {
            return Err(format!("{} does not read back as it was written", path.display()).into());
        }
    }
    Ok(())
}

/// Columns `gpu_id`, `chip_id`, `name` and `chip` (the generation) identify; all others are properties.
fn device_rows(csv: &str) -> Result<Vec<DeviceRow>> {
    let mut lines = csv.lines();
    let columns = cells(lines.next().ok_or("empty device table")?);
    let mut rows = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let mut row = DeviceRow::default();
        for (column, cell) in columns.iter().zip(cells(line)) {
            match column.as_str() {
                "gpu_id" => row.gpu_id = cell.parse()?,
                "chip_id" => row.chip_id = u64::from_str_radix(cell.trim_start_matches("0x"), 16)?,
                "name" => row.name = cell,
                "chip" => row.generation = cell.parse()?,
                _ if cell.is_empty() => {}
                key => row.properties.push((key.to_string(), property(key, &cell)?)),
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// `True` → `yes`; register values of `magic` in hexadecimal, lists of them as `0x8e01:0x0,…`.
fn property(key: &str, cell: &str) -> Result<String> {
    Ok(match cell {
        "True" => "yes".to_string(),
        "False" => "no".to_string(),
        _ if key.ends_with("magic_raw") => {
            let mut pairs = Vec::new();
            for pair in cell.split(']').map(|p| p.trim_start_matches([' ', '['])).filter(|p| !p.is_empty()) {
                let (offset, value) = pair.split_once(',').ok_or("magic_raw is not a list of pairs")?;
                let (offset, value): (u32, u32) = (offset.trim().parse()?, value.trim().parse()?);
                pairs.push(format!("{offset:#x}:{value:#x}"));
            }
            pairs.join(",")
        }
        _ if key.contains(".magic.") => format!("{:#x}", cell.parse::<u64>()?),
        _ => cell.to_string(),
    })
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.iter_mut().last().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_leaves_additions_alone() {
        let folder = std::env::temp_dir().join(format!("unwedge-import-{}", std::process::id()));
        let (tree, out) = (folder.join("tree"), folder.join("data"));
        let additions = out.join("additions");
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&additions).unwrap();
        let xml = r#"<database><domain name="A6XX" width="32"><reg32 offset="0x10" name="OF_THE_TREE"/></domain></database>"#;
        fs::write(tree.join("a6xx.xml"), xml).unwrap();
        let added = "domain A6XX width=32\n  reg32 0x20 ADDED\n";
        fs::write(additions.join("a6xx.regs"), added).unwrap();
        fs::write(out.join("a6xx.regs"), "domain A6XX width=32\n  reg32 0x30 OF_BEFORE\n").unwrap();
        write(&tree, None, "test-1", &out).unwrap();
        let imported = fs::read_to_string(out.join("a6xx.regs")).unwrap();
        assert!(imported.contains("OF_THE_TREE") && !imported.contains("OF_BEFORE"), "{imported}");
        assert_eq!(fs::read_to_string(additions.join("a6xx.regs")).unwrap(), added);
        fs::remove_dir_all(folder).unwrap();
    }
}
