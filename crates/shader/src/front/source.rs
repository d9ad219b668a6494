//! Sources in WGSL and GLSL. naga translates them to SPIR-V with debug lines, which the SPIR-V reader of this crate reads.
//!
//! naga reads GLSL of vertex, fragment and compute shaders. A panic of naga is an error. Never: optimization.

use crate::ir::Stage;

/// The name of the thread that naga runs in. A panic of this thread becomes an error, so a program's panic hook may ignore it.
pub const NAGA_THREAD: &str = "naga";

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
    /// The languages by the file name ending.
    pub const ENDINGS: [(&str, SourceLanguage); 4] = [
        ("wgsl", SourceLanguage::Wgsl),
        ("vert", SourceLanguage::Glsl(Stage::Vertex)),
        ("frag", SourceLanguage::Glsl(Stage::Fragment)),
        ("comp", SourceLanguage::Glsl(Stage::Compute)),
    ];

    /// The language of an ending.
    pub fn of_ending(ending: &str) -> Option<SourceLanguage> {
        SourceLanguage::ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, language)| *language)
    }

    /// The language of a file by the ending of its name.
    pub fn of_name(name: &str) -> Option<SourceLanguage> {
        SourceLanguage::of_ending(name.rsplit_once('.')?.1)
    }
}

/// Translates a source to the words of a SPIR-V module, with debug lines of the file `name`.
///
/// # Errors
/// When the source is not valid, or needs something that naga or this build does not have.
pub fn compile(source: &str, name: &str, language: SourceLanguage) -> Result<Vec<u32>, SourceError> {
    match language {
        #[cfg(feature = "wgsl")]
        SourceLanguage::Wgsl => through_naga::guarded(source, || through_naga::wgsl(source, name)),
        #[cfg(not(feature = "wgsl"))]
        SourceLanguage::Wgsl => Err(SourceError::NotBuilt("WGSL")),
        #[cfg(feature = "glsl")]
        SourceLanguage::Glsl(stage) => {
            through_naga::guarded(source, || through_naga::glsl(source, name, stage))
        }
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

    /// Nested brackets, each of which takes naga's GLSL parser through all levels of precedence.
    const MAX_NESTING: usize = 200;
    /// The most consecutive operators and statement headers, and `else` branches in a source: naga recurses over them.
    const MAX_CHAIN: usize = 4_096;
    /// Bytes of naga's stack. They are reserved, but not used until they are needed.
    const STACK: usize = 512 << 20;

    /// Runs naga, which may panic on broken input, and overflow the stack on input that nests too deep. Its thread has the name
    /// [`super::NAGA_THREAD`].
    pub(super) fn guarded(
        source: &str,
        run: impl FnOnce() -> Result<Vec<u32>, SourceError> + Send,
    ) -> Result<Vec<u32>, SourceError> {
        if let Some(offset) = nested_too_deep(source) {
            let at = naga::Span::new(offset as u32, offset as u32 + 1).location(source);
            return Err(located(Some(at), "the source is nested too deep".to_owned()));
        }
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name(super::NAGA_THREAD.to_owned());
            let thread = builder.stack_size(STACK).spawn_scoped(scope, run);
            match thread.map(|thread| thread.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(SourceError::Whole("naga failed on this source".to_owned())),
                Err(e) => Err(SourceError::Whole(format!("no thread for naga: {e}"))),
            }
        })
    }

    /// The byte at which a source, without its comments, is nested too deeply.
    fn nested_too_deep(source: &str) -> Option<usize> {
        let bytes = source.as_bytes();
        let (mut at, mut depth, mut parentheses, mut comments) = (0, 0_usize, 0_usize, 0_usize);
        let (mut operators, mut headers, mut branches) = (0, 0, 0);
        while let Some(&byte) = bytes.get(at) {
            let two = bytes.get(at..at + 2).unwrap_or_default();
            let mut taken = 1;
            match (two, byte) {
                (b"/*", _) => (comments, taken) = (comments + 1, 2),
                (b"*/", _) if comments > 0 => (comments, taken) = (comments - 1, 2),
                _ if comments > 0 => {}
                (b"//", _) => taken = source[at..].find('\n').unwrap_or(source.len() - at),
                (_, b'(' | b'[') => (depth, parentheses) = (depth + 1, parentheses + 1),
                (_, b')' | b']') => {
                    (depth, parentheses) = (depth.saturating_sub(1), parentheses.saturating_sub(1));
                }
                (_, b'{') => (depth, operators, headers) = (depth + 1, 0, 0),
                (_, b'}') => (depth, operators, headers) = (depth.saturating_sub(1), 0, 0),
                (_, b';') if parentheses == 0 => (operators, headers) = (0, 0),
                // What is between commas is not nested.
                (_, b',') => operators = 0,
                (_, byte) if byte.is_ascii_alphanumeric() || byte == b'_' => {
                    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
                    taken = bytes[at..].iter().take_while(word).count();
                    match &bytes[at..at + taken] {
                        b"else" => branches += 1,
                        b"if" | b"while" | b"for" | b"do" | b"switch" | b"loop" => headers += 1,
                        _ => {}
                    }
                }
                (_, byte) if byte.is_ascii_punctuation() => operators += 1,
                _ => {}
            }
            if depth > MAX_NESTING || [operators, headers, branches].iter().any(|&count| count > MAX_CHAIN) {
                return Some(at);
            }
            at += taken;
        }
        None
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

    /// Options for the shader as it is written, without bounds on loops. Workgroup memory is zeroed as WGSL defines.
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
