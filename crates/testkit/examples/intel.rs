//! Writes the synthetic error states of i915 and dumps of xe into a folder, to look at them with the program:
//! `cargo run -p unwedge-testkit --example intel -- DIR`; with `--large` behind it, ones of some 50 MB.

use std::path::Path;
use unwedge_testkit::intel::{EngineState, TestDevice, large_buffers};
use unwedge_testkit::{i915, xe};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, large) = match &arguments[..] {
        [folder] => (folder, false),
        [folder, large] if large == "--large" => (folder, true),
        _ => {
            eprintln!("usage: intel DIR [--large]");
            std::process::exit(2);
        }
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let dumps = if large { larges() } else { i915::variety().into_iter().chain(xe::variety()).collect() };
    for (name, text) in dumps {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Of some 50 MB: memory of the application, packed and not.
fn larges() -> Vec<(String, Vec<u8>)> {
    let engine = |mebibytes| {
        large_buffers(mebibytes)
            .into_iter()
            .fold(EngineState::new("rcs0"), |engine, (at, words)| engine.user(at, &words))
    };
    let i915 = |mebibytes| {
        i915::ErrorStateBuilder::complete(TestDevice::named("tgl"), i915::I915Era::V6_12)
            .engine(engine(mebibytes))
    };
    let xe = xe::DevcoreBuilder::complete(TestDevice::named("lnl"), xe::XeEra::V6_14).engine(engine(38));
    vec![
        ("i915 packed".to_owned(), i915(74).text()),
        ("i915 unpacked".to_owned(), i915(38).unpacked().text()),
        ("xe".to_owned(), xe.text()),
    ]
}
