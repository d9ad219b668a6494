//! Writes the synthetic error states of i915 and dumps of xe into a folder, to look at them with the program:
//! `cargo run -p unwedge-testkit --example intel -- DIR`.

use std::path::Path;
use unwedge_testkit::{i915, xe};

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: intel DIR");
        std::process::exit(2);
    };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, text) in i915::variety().into_iter().chain(xe::variety()) {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
