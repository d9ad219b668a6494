//! The code objects of a file: an ELF file of an AMD GPU is one, bundles, programs and archives hold several.

use crate::Style;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_capture::bundle::{Bundle, BundleContents, BundleEntry};
use unwedge_capture::elf;

/// A code object, or another file beside it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectSummary {
    /// Its number among the code objects: what `--object` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// What it is in, from the outside; empty for the file itself.
    pub path: Vec<String>,
    /// `code-object`, `bitcode`, `spirv`, `host`, `other`.
    pub contents: &'static str,
    /// The processor that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Who loads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader: Option<&'static str>,
    /// Its size.
    pub bytes: u64,
    /// Whether it was compressed.
    pub compressed: bool,
    /// How many kernels it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<usize>,
}

impl ObjectSummary {
    fn of(bytes: &[u8], object: Option<&elf::CodeObject<'_>>, number: Option<usize>) -> ObjectSummary {
        let kernels = |object: &elf::CodeObject<'_>| object.functions().iter().filter(|f| f.kernel).count();
        ObjectSummary {
            number,
            path: Vec::new(),
            contents: BundleContents::CodeObject(None).id(),
            processor: object.and_then(elf::CodeObject::processor).map(str::to_owned),
            loader: object.map(|object| object.loader.id()),
            bytes: bytes.len() as u64,
            compressed: false,
            kernels: object.map(kernels),
        }
    }

    fn of_entry(bundle: &Bundle<'_>, entry: &BundleEntry, number: Option<usize>) -> ObjectSummary {
        let bytes = bundle.bytes(entry);
        let unread = ObjectSummary {
            number: None,
            path: entry.path.clone(),
            contents: entry.contents.id(),
            processor: entry.processor().map(str::to_owned),
            loader: None,
            bytes: bytes.len() as u64,
            compressed: entry.compressed,
            kernels: None,
        };
        match number {
            Some(_) => {
                let read = ObjectSummary::of(bytes, elf::read(bytes).ok().as_ref(), number);
                let processor = read.processor.or(unread.processor);
                let (path, compressed) = (unread.path, unread.compressed);
                ObjectSummary { path, processor, compressed, ..read }
            }
            None => unread,
        }
    }

    /// The code object that a file is; `None` if it is not one.
    pub fn of_file(bytes: &[u8]) -> Option<ObjectSummary> {
        elf::read(bytes).ok().map(|object| ObjectSummary::of(bytes, Some(&object), None))
    }

    /// What a bundle holds.
    pub fn of_bundle(bundle: &Bundle<'_>) -> Vec<ObjectSummary> {
        let mut objects = 0..;
        let of = |entry: &BundleEntry| {
            let number = match entry.contents {
                BundleContents::CodeObject(_) => objects.next(),
                _ => None,
            };
            ObjectSummary::of_entry(bundle, entry, number)
        };
        bundle.entries.iter().map(of).collect()
    }
}

/// A table of what a file holds.
///
/// # Errors
/// When `out` does not take it.
pub fn table(objects: &[ObjectSummary], style: Style, out: &mut dyn Write) -> io::Result<()> {
    if objects.is_empty() {
        return writeln!(out, "  objects   none for an AMD GPU");
    }
    writeln!(out, "\n  {}", style.bold("object  processor  loader   kernels      bytes"))?;
    for object in objects {
        let number = object.number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let processor = object.processor.as_deref().unwrap_or("-");
        let loader = object.loader.unwrap_or(if object.number.is_some() { "-" } else { object.contents });
        let kernels = object.kernels.map_or_else(|| "-".to_owned(), |kernels| kernels.to_string());
        let compressed = if object.compressed { ", compressed" } else { "" };
        let path = object.path.join(" > ");
        let line = format!(
            "{number:>6}  {processor:<9}  {loader:<7}  {kernels:>7}  {:>9}  {path}{compressed}",
            object.bytes
        );
        writeln!(out, "  {}", line.trim_end())?;
    }
    Ok(())
}
