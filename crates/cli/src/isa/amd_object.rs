//! The choice of a code object in a file that holds several.

use crate::args::AmdTarget;
use crate::failure::{Failure, Outcome};
use std::fmt::Write as _;
use unwedge::capture::bundle::{Bundle, BundleContents, BundleEntry};
use unwedge::capture::elf;
use unwedge::files::Input;
use unwedge::isa::amdgcn::Gpu;
use unwedge_view::Style;
use unwedge_view::info::objects::{ObjectSummary, table};

/// The code object of a bundle, program or archive that `--object` or `--gpu` chooses, or the only one; any other file as it is. Says
/// on standard error what of the file was lost.
///
/// # Errors
/// When none is chosen, or several.
pub(super) fn chosen(
    input: Input,
    target: &AmdTarget,
    number: Option<usize>,
    limit: u64,
) -> Result<(Input, Outcome), Failure> {
    let Some(bundle) = Bundle::read(&input.bytes, limit) else {
        return match number {
            Some(_) => Err(Failure::Usage(format!(
                "{}: --object is for files that hold several code objects",
                input.name
            ))),
            None => Ok((input, Outcome::Complete)),
        };
    };
    let outcome = Outcome::of(&input.name, &bundle.diagnostics);
    let objects: Vec<&BundleEntry> = bundle.code_objects().collect();
    let wanted = target.gpu.as_deref().map(Gpu::new).transpose();
    let wanted = wanted.map_err(|wrong| Failure::Usage(wrong.to_string()))?;
    let fits = |entry: &&BundleEntry| {
        let of = |gpu: &Gpu| match entry.contents {
            BundleContents::CodeObject(Some(own)) => !elf::is_other_processor(own, gpu),
            _ => false,
        };
        wanted.as_ref().is_none_or(of)
    };
    let fitting: Vec<&BundleEntry> = match number {
        Some(number) => objects.get(number).copied().into_iter().collect(),
        None => objects.iter().copied().filter(fits).collect(),
    };
    if let [entry] = fitting[..] {
        let name = format!("{} > {}", input.name, entry.name());
        let bytes = bundle.bytes(entry).to_vec();
        let diagnostics = input.diagnostics.clone();
        let stored = input.stored;
        return Ok((Input { name, bytes, diagnostics, compression: Vec::new(), stored }, outcome));
    }
    let mut message = input.name.clone();
    let _ = match (&fitting[..], number, &wanted) {
        _ if objects.is_empty() => write!(message, ": does not hold a code object of an AMD GPU"),
        ([], Some(number), _) => write!(message, ": no code object {number}"),
        ([], _, Some(gpu)) => write!(message, ": no code object for {}", gpu.name()),
        (_, _, Some(gpu)) => {
            write!(message, ": several code objects for {}: choose one with --object", gpu.name())
        }
        _ => write!(message, ": several code objects: choose one with --gpu or --object"),
    };
    if !objects.is_empty() {
        let mut rows = Vec::new();
        let listed = ObjectSummary::of_bundle(&bundle);
        // Writing to memory does not fail.
        let _ = table(&listed, Style { colour: false }, &mut rows);
        message.push_str(String::from_utf8_lossy(&rows).trim_end());
    }
    Err(Failure::NotFound(message))
}
