//! Sources in WGSL and GLSL. naga translates them to SPIR-V with debug lines, which the SPIR-V reader of this crate reads.
//!
//! naga reads GLSL of vertex, fragment and compute shaders. A panic of naga is an error. Never: optimization.

use crate::ir::Stage;

/// A language that is read through naga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLanguage {
    /// WGSL, which has several entry points.
    Wgsl,
    /// GLSL, for a stage.
    Glsl(Stage),
}

/// Why a source gives no SPIR-V.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The feature of the crate that reads this language is not enabled.
    #[error("{0} is not supported by this build")]
    NotBuilt(&'static str),
    /// It is not valid, or naga does not support it.
    #[error("line {line}, column {column}: {message}")]
    Line {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// The reason.
        message: String,
    },
    /// The same, without a position.
    #[error("{0}")]
    Whole(String),
}

impl SourceLanguage {
    /// The language of a file by the ending of its name.
    pub fn of_name(name: &str) -> Option<SourceLanguage> {
        Some(match name.rsplit_once('.')?.1 {
            "wgsl" => SourceLanguage::Wgsl,
            "vert" => SourceLanguage::Glsl(Stage::Vertex),
            "frag" => SourceLanguage::Glsl(Stage::Fragment),
            "comp" => SourceLanguage::Glsl(Stage::Compute),
            _ => return None,
        })
    }
}

/// Translates a source to the words of a SPIR-V module, with debug lines of the file `name`.
///
/// # Errors
/// When the source is not valid, or needs something that naga or this build does not have.
pub fn compile(source: &str, name: &str, language: SourceLanguage) -> Result<Vec<u32>, SourceError> {
    match language {
        #[cfg(feature = "wgsl")]
        SourceLanguage::Wgsl => through_naga::guarded(|| through_naga::wgsl(source, name)),
        #[cfg(not(feature = "wgsl"))]
        SourceLanguage::Wgsl => Err(SourceError::NotBuilt("WGSL")),
        #[cfg(feature = "glsl")]
        SourceLanguage::Glsl(stage) => through_naga::guarded(|| through_naga::glsl(source, name, stage)),
        #[cfg(not(feature = "glsl"))]
        SourceLanguage::Glsl(_) => {
            let _ = (source, name);
            Err(SourceError::NotBuilt("GLSL"))
        }
    }
}

#[cfg(any(feature = "wgsl", feature = "glsl"))]
mod through_naga {
    use super::SourceError;
    use naga::back::spv::{self, DebugInfo, WriterFlags, ZeroInitializeWorkgroupMemoryMode};
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    use std::error::Error;

    fn located(location: Option<naga::SourceLocation>, message: String) -> SourceError {
        match location {
            Some(at) => SourceError::Line { line: at.line_number, column: at.line_position, message },
            None => SourceError::Whole(message),
        }
    }

    /// The message of an error and of its causes.
    fn chain(error: &dyn Error) -> String {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        message
    }

    /// Runs naga, which may panic on broken input.
    pub(super) fn guarded(
        run: impl FnOnce() -> Result<Vec<u32>, SourceError> + std::panic::UnwindSafe,
    ) -> Result<Vec<u32>, SourceError> {
        let failed = |_| Err(SourceError::Whole("naga failed on this source".to_owned()));
        std::panic::catch_unwind(run).unwrap_or_else(failed)
    }

    #[cfg(feature = "wgsl")]
    pub(super) fn wgsl(source: &str, name: &str) -> Result<Vec<u32>, SourceError> {
        let module = naga::front::wgsl::parse_str(source)
            .map_err(|e| located(e.location(source), e.message().to_owned()))?;
        // WGSL defines division by zero.
        let options = spv::Options { emit_int_div_checks: true, ..options() };
        let language = ::spirv::SourceLanguage::WGSL;
        words(&module, options, DebugInfo { source_code: source, file_name: name, language })
    }

    #[cfg(feature = "glsl")]
    pub(super) fn glsl(source: &str, name: &str, stage: crate::ir::Stage) -> Result<Vec<u32>, SourceError> {
        let stage = match stage {
            crate::ir::Stage::Vertex => naga::ShaderStage::Vertex,
            crate::ir::Stage::Fragment => naga::ShaderStage::Fragment,
            crate::ir::Stage::Compute => naga::ShaderStage::Compute,
            _ => {
                return Err(SourceError::Whole(
                    "naga reads GLSL of vertex, fragment and compute shaders".into(),
                ));
            }
        };
        let module = naga::front::glsl::Frontend::default().parse(&stage.into(), source).map_err(
            |errors| match errors.errors.first() {
                Some(first) => located(Some(first.meta.location(source)), first.kind.to_string()),
                None => SourceError::Whole(errors.to_string()),
            },
        )?;
        let options = spv::Options {
            emit_int_div_checks: false,
            zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
            ..options()
        };
        let language = ::spirv::SourceLanguage::GLSL;
        words(&module, options, DebugInfo { source_code: source, file_name: name, language })
    }

    /// The shader as it is written, without bounds for loops. Workgroup memory is zeroed as WGSL defines.
    fn options<'a>() -> spv::Options<'a> {
        spv::Options {
            lang_version: (1, 3),
            flags: WriterFlags::DEBUG,
            force_loop_bounding: false,
            zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::Polyfill,
            ..spv::Options::default()
        }
    }

    fn words<'a>(
        module: &naga::Module,
        mut options: spv::Options<'a>,
        info: DebugInfo<'a>,
    ) -> Result<Vec<u32>, SourceError> {
        let valid =
            Validator::new(ValidationFlags::all(), Capabilities::all()).validate(module).map_err(|e| {
                // The other spans are those of what is around the narrowest one.
                let narrowest =
                    e.spans().min_by_key(|(span, _)| span.to_range().map_or(usize::MAX, |range| range.len()));
                let at = narrowest.map(|(span, _)| span.location(info.source_code));
                located(at, chain(e.as_inner()))
            })?;
        options.debug_info = Some(info);
        spv::write_vec(module, &valid, &options, None).map_err(|e| SourceError::Whole(chain(&e)))
    }
}
