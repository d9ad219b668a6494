//! `cargo xtask dist`: one static binary with its man pages, completions, documents and licences, as an archive; `cargo xtask
//! assets`: the man pages, completions and links alone, which packages of distributions take.
//!
//! Never: anything outside of `target/`. Archives of the same commit by the same toolchain are the same bytes.

mod licences;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built unless `--target` says otherwise. With musl, whose allocator is slower, bulk decoding takes half as long again.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The file with the licences of what is linked in.
const LICENCES: &str = "THIRD-PARTY-LICENCES.txt";
/// Names under which the program is a tool of Mesa's.
const DROP_INS: [&str; 5] = ["crashdec", "cffdump", "afuc-disasm", "afuc-asm", "rddecompiler"];

/// Writes the archive.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut target, mut lua) = (TARGET.to_owned(), true);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--target" => target = args.next().ok_or("--target takes a target of rustc")?.clone(),
            "--no-lua" => lua = false,
            _ => return Err("usage: cargo xtask dist [--target TARGET] [--no-lua]".into()),
        }
    }
    let binary = build(&target, lua)?;
    let bytes = fs::read(&binary).map_err(|e| format!("{}: {e}", binary.display()))?;
    if has_interpreter(&bytes) {
        return Err(format!("{} is not static: it asks for a dynamic loader", binary.display()));
    }
    let name = format!("unwedge-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = root().join("target/dist").join(&name);
    stage(&folder, &binary, &target).map_err(|e| format!("{}: {e}", folder.display()))?;
    let archive = pack(&name)?;
    let size = fs::metadata(&archive).map_err(|e| format!("{}: {e}", archive.display()))?.len();
    println!("{}: {size} bytes, of a binary of {}", archive.display(), bytes.len());
    Ok(())
}

/// Writes what packages take beside the binary to `target/assets`.
pub fn assets(args: &[String]) -> Result<(), String> {
    if !args.is_empty() {
        return Err("usage: cargo xtask assets".into());
    }
    let folder = root().join("target/assets");
    let failed = |e: io::Error| format!("{}: {e}", folder.display());
    fresh(&folder).and_then(|()| write_assets(&folder)).map_err(failed)?;
    let licences = folder.join("share/doc/unwedge").join(LICENCES);
    write(&licences, licences::texts(TARGET)?.as_bytes()).map_err(failed)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The result of a program, if it succeeds.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(root()).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim_end()))
    }
}

/// Builds the binary for a target without any shared library.
fn build(target: &str, lua: bool) -> Result<PathBuf, String> {
    let flags =
        format!("target.{target}.rustflags=['-Ctarget-feature=+crt-static','-Crelocation-model=static']");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", "unwedge-cli", "--target", target]);
    cargo.args(["--config", &flags]).current_dir(root());
    if !lua {
        cargo.arg("--no-default-features");
    }
    let status = cargo.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err(format!("no binary for {target}: docs/install.md says what each target needs"));
    }
    Ok(root().join("target").join(target).join("release/unwedge"))
}

/// Whether a 64-bit ELF file names a dynamic loader (PT_INTERP).
fn has_interpreter(elf: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let field = elf.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let Some((first, size, count)) = headers() else { return false };
    (0..count).any(|i| number(first.saturating_add(i * size), 4) == Some(3))
}

/// Makes a folder anew.
fn fresh(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::create_dir_all(folder)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

/// Man pages, completions, and links under the names of Mesa's tools, laid out as below `/usr`.
fn write_assets(folder: &Path) -> io::Result<()> {
    for (name, page) in unwedge_args::pages::pages()? {
        write(&folder.join("share/man/man1").join(name), &page)?;
    }
    for (place, script) in unwedge_args::pages::completion_files() {
        write(&folder.join("share").join(place), &script)?;
    }
    let links = folder.join("lib/unwedge/drop-ins");
    fs::create_dir_all(&links)?;
    for name in DROP_INS {
        std::os::unix::fs::symlink("../../../bin/unwedge", links.join(name))?;
    }
    Ok(())
}

/// Copies a folder and what is in it.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Lays the content of the archive out.
fn stage(folder: &Path, binary: &Path, target: &str) -> io::Result<()> {
    fresh(folder)?;
    write_assets(folder)?;
    let bin = folder.join("bin");
    fs::create_dir_all(&bin)?;
    fs::copy(binary, bin.join("unwedge"))?;
    let documents = folder.join("share/doc/unwedge");
    fs::create_dir_all(&documents)?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE"] {
        fs::copy(root().join(name), documents.join(name))?;
    }
    fs::copy(root().join("data/NOTICE.md"), documents.join("NOTICE.md"))?;
    for name in ["docs", "contrib"] {
        copy_folder(&root().join(name), &documents.join(name))?;
    }
    let licences = licences::texts(target).map_err(io::Error::other)?;
    write(&documents.join(LICENCES), licences.as_bytes())
}

/// Packs the folder, with the time of the commit for every file.
fn pack(name: &str) -> Result<PathBuf, String> {
    let time =
        output(Command::new("git").args(["log", "-1", "--format=%ct"])).unwrap_or_else(|_| b"0".to_vec());
    let time = format!("--mtime=@{}", String::from_utf8_lossy(&time).trim());
    let folder = root().join("target/dist");
    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", &time]);
    tar.args(["--use-compress-program=gzip -9n", "--create", "--file"]).arg(&archive);
    tar.arg("--directory").arg(&folder).arg(name);
    output(&mut tar)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of an ELF file with one program header of a type.
    fn elf(kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes.extend(kind.to_le_bytes());
        bytes.resize(120, 0);
        bytes
    }

    #[test]
    fn a_dynamic_loader_is_noticed() {
        assert!(has_interpreter(&elf(3)));
        assert!(!has_interpreter(&elf(1)));
        assert!(!has_interpreter(b"short"));
    }

    #[test]
    fn assets_have_a_page_of_every_command_and_the_links() {
        let folder = root().join("target/assets-of-a-test");
        fresh(&folder).unwrap();
        write_assets(&folder).unwrap();
        for page in ["unwedge.1", "unwedge-explain.1", "unwedge-amd-check.1"] {
            let text = fs::read_to_string(folder.join("share/man/man1").join(page)).unwrap();
            assert!(text.contains(".SH SYNOPSIS"), "{page}");
        }
        assert!(folder.join("share/bash-completion/completions/unwedge").is_file());
        for name in DROP_INS {
            let link = fs::read_link(folder.join("lib/unwedge/drop-ins").join(name)).unwrap();
            assert_eq!(link, Path::new("../../../bin/unwedge"), "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
