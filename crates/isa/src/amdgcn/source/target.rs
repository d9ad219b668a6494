//! The GPU that a file of assembly names, before it is assembled.

use super::statement::{LineRest, quoted, without_comments};
use crate::amdgcn::{Gpu, GpuError};
use unwedge_base::GfxTarget;

/// Lines in which a file may name its GPU; compilers do it in the first ones.
const LINES: usize = 1000;

/// A processor, with the modes that its code needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTarget {
    /// LLVM's name of the processor: `gfx90a`.
    pub processor: String,
    /// Who loads the code: `amdhsa`, `amdpal`, `mesa3d`; empty if unknown.
    pub system: String,
    /// Whether page faults are retried, if the code runs in one of the two modes only.
    pub xnack: Option<bool>,
    /// Whether registers have ECC, if the code runs in one of the two modes only.
    pub sramecc: Option<bool>,
}

impl SourceTarget {
    /// Reads `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`, in quotes or not. `None` if it names no processor.
    pub fn of_triple(triple: &str) -> Option<SourceTarget> {
        let triple = triple.trim().trim_matches('"');
        // The name of a generic processor has hyphens of its own: gfx9-generic.
        let start = triple.rfind("-gfx")? + 1;
        let mut parts = triple.get(start..)?.split(':');
        let processor = parts.next().filter(|name| name.len() > 3)?.to_owned();
        let system = triple.split('-').nth(2).unwrap_or_default().to_owned();
        let (mut xnack, mut sramecc) = (None, None);
        for part in parts {
            match part {
                "xnack+" | "xnack-" => xnack = Some(part.ends_with('+')),
                "sramecc+" | "sramecc-" => sramecc = Some(part.ends_with('+')),
                _ => {}
            }
        }
        Some(SourceTarget { processor, system, xnack, sramecc })
    }

    /// Its GPU.
    ///
    /// # Errors
    /// When the processor is not known.
    pub fn gpu(&self) -> Result<Gpu, GpuError> {
        let gpu = Gpu::new(&self.processor)?;
        match self.xnack {
            Some(true) => gpu.with_features("+xnack"),
            Some(false) => gpu.with_features("-xnack"),
            None => Ok(gpu),
        }
    }
}

/// The GPU that the first lines of a file name: by `.amdgcn_target`, or by `.hsa_code_object_isa` of HSA v2.
pub fn target_of(source: &str) -> Option<SourceTarget> {
    let end = source.match_indices('\n').nth(LINES).map_or(source.len(), |(at, _)| at);
    let (clean, _) = without_comments(source.get(..end)?);
    clean.lines().find_map(|line| {
        let (name, rest) = LineRest::new(line).word();
        match name {
            ".amdgcn_target" => SourceTarget::of_triple(rest.text),
            ".hsa_code_object_isa" => match rest.parts()[..] {
                [major, minor, stepping, vendor, _] if quoted(vendor.text)? == b"AMD" => {
                    let number = |part: LineRest<'_>| part.text.parse::<u8>().ok();
                    let (major, minor, stepping) = (number(major)?, number(minor)?, number(stepping)?);
                    let processor = GfxTarget { major, minor, stepping }.to_string();
                    Some(SourceTarget { processor, system: "amdhsa".to_owned(), xnack: None, sramecc: None })
                }
                _ => None,
            },
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples() {
        let of = |triple: &str| SourceTarget::of_triple(triple).map(|t| (t.processor, t.xnack));
        let known = |name: &str, xnack| Some((name.to_owned(), xnack));
        let modes = SourceTarget::of_triple("amdgcn-amd-amdpal--gfx90a:sramecc-:xnack+").expect("a target");
        assert_eq!((&*modes.system, modes.xnack, modes.sramecc), ("amdpal", Some(true), Some(false)));
        assert_eq!(of("\"amdgcn-amd-amdhsa--gfx1030\""), known("gfx1030", None));
        assert_eq!(of("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"), known("gfx90a", Some(false)));
        assert_eq!(of("amdgcn-amd-amdhsa--gfx906:xnack+"), known("gfx906", Some(true)));
        assert_eq!(of("amdgcn-amd-amdhsa--gfx10-3-generic:xnack+"), known("gfx10-3-generic", Some(true)));
        assert_eq!(of("amdgcn-mesa-mesa3d--gfx803"), known("gfx803", None));
        for other in ["", "\"", "amdgcn-amd-amdhsa--", "gfx900", "x86_64-unknown-linux-gnu", "a-gfx"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn targets_of_files() {
        let named = |source: &str| target_of(source).map(|target| target.processor);
        let gfx803 = Some("gfx803".to_owned());
        assert_eq!(named("\t.text\n.amdgcn_target \"amdgcn-amd-amdhsa--gfx803\" ; gfx900\n"), gfx803);
        assert_eq!(
            named("/* .amdgcn_target \"a--gfx900\" */ .hsa_code_object_isa 8,0,3,\"AMD\",\"AMDGPU\""),
            gfx803
        );
        assert_eq!(named(".hsa_code_object_isa 9,0,12,\"AMD\",\"AMDGPU\""), Some("gfx90c".to_owned()));
        for none in [
            "",
            "s_endpgm",
            ".hsa_code_object_isa",
            ".hsa_code_object_isa 8,0,300,\"AMD\",\"AMDGPU\"",
            "// .amdgcn_target \"a--gfx803\"",
        ] {
            assert_eq!(named(none), None, "{none}");
        }
    }
}
