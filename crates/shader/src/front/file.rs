//! Files of shaders in any form. The content decides which form it is.
//!
//! Never: opens a file, or accepts a shader that is not valid.

use super::nir::{self, Arguments, NirCause, NirError};
use super::source::{SourceError, SourceLanguage, compile};
use super::spirv::{self, EntryPointName, Options, Reader, SpirvCause, SpirvError};
use crate::ir::Shader;
use crate::text::{self, Listing, ParseError};
use crate::valid::{InvalidShader, validate};

/// Why a file gives no shader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is something else.
    #[error(
        "neither SPIR-V, the text of a shader in NIR or this program's IR, nor a .wgsl, .vert, .frag or .comp file"
    )]
    OtherFile,
    /// A specialization constant for a shader that has none.
    #[error("the text of a shader has no specialization constants")]
    Specialization,
    /// Meanings of arguments for a shader that is not in NIR.
    #[error("only NIR has arguments")]
    Arguments,
    /// No entry point of this name.
    #[error("the entry point does not exist")]
    EntryPoint,
    /// A source in WGSL or GLSL that is not valid or not supported.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// SPIR-V that is not valid or not supported.
    #[error(transparent)]
    Spirv(#[from] SpirvError),
    /// NIR that is not valid or not supported.
    #[error(transparent)]
    Nir(#[from] NirError),
    /// Text that is not of the IR's form.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// A shader that breaks a rule of the IR, and the text of the instruction that does.
    #[error("{}: {}{}", .0.func, .0.reason, .1.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Invalid(InvalidShader, Option<String>),
}

impl LoadError {
    /// Whether the file is a shader that is not valid, rather than something that cannot be used for another reason.
    pub fn is_invalid(&self) -> bool {
        match self {
            LoadError::OtherFile
            | LoadError::Specialization
            | LoadError::Arguments
            | LoadError::EntryPoint
            | LoadError::Source(SourceError::NotBuilt(_)) => false,
            LoadError::Spirv(e) => {
                !matches!(e.cause, SpirvCause::Unsupported(_) | SpirvCause::Limit(_) | SpirvCause::EntryPoint)
            }
            LoadError::Nir(e) => !matches!(e.cause, NirCause::Unsupported(_) | NirCause::Limit(_)),
            LoadError::Source(_) | LoadError::Text(_) | LoadError::Invalid(..) => true,
        }
    }
}

/// The text of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The name of the file, as in source positions.
    pub file: String,
    /// The text.
    pub text: String,
}

/// A file of shaders.
#[derive(Debug)]
pub enum ShaderFile<'a> {
    /// The words of a SPIR-V module.
    Spirv(Vec<u32>),
    /// A compute shader in NIR, as Mesa prints it, with the meaning of its arguments and the name of the file.
    Nir(&'a str, nir::Options),
    /// A shader of the IR, as text.
    Text(&'a str),
}

impl<'a> ShaderFile<'a> {
    /// A file of this content.
    ///
    /// # Errors
    /// When it is neither SPIR-V nor text of NIR or the IR, or SPIR-V that ends within a word.
    pub fn new(bytes: &'a [u8]) -> Result<ShaderFile<'a>, LoadError> {
        let magic = bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
        if magic.is_some_and(|magic| [magic, magic.swap_bytes()].contains(&::spirv::MAGIC_NUMBER)) {
            return Ok(ShaderFile::Spirv(spirv::words(bytes)?));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| LoadError::OtherFile)?;
        let written = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let first = text.lines().map(str::trim).find(written).unwrap_or_default();
        match first.split_whitespace().next() {
            Some("shader") => Ok(ShaderFile::Text(text)),
            Some("shader:") => Ok(ShaderFile::Nir(text, nir::Options::default())),
            _ => Err(LoadError::OtherFile),
        }
    }

    /// A file of this name and content. Anything that [`ShaderFile::new`] does not know is taken as source in WGSL (`.wgsl`) or GLSL (`.vert`,
    /// `.frag`, `.comp`) if its name has one of these endings, and becomes SPIR-V.
    ///
    /// # Errors
    /// When it is none of these, or a source that is not valid or not supported.
    pub fn named(name: &str, bytes: &'a [u8]) -> Result<ShaderFile<'a>, LoadError> {
        match (ShaderFile::new(bytes), SourceLanguage::of_name(name)) {
            (Err(LoadError::OtherFile), Some(language)) => ShaderFile::source(name, bytes, language),
            (Ok(ShaderFile::Nir(text, options)), _) => {
                Ok(ShaderFile::Nir(text, nir::Options { file: name.to_owned(), ..options }))
            }
            (file, _) => file,
        }
    }

    /// A source in a given language, which becomes SPIR-V. The ending of the name does not matter.
    ///
    /// # Errors
    /// When it is not valid or not supported.
    pub fn source(
        name: &str,
        bytes: &'a [u8],
        language: SourceLanguage,
    ) -> Result<ShaderFile<'a>, LoadError> {
        let source = std::str::from_utf8(bytes).map_err(|_| LoadError::OtherFile)?;
        Ok(ShaderFile::Spirv(compile(source, name, language)?))
    }

    /// The same file of NIR, with these arguments.
    ///
    /// # Errors
    /// When it is not NIR.
    pub fn with_arguments(self, arguments: &Arguments) -> Result<ShaderFile<'a>, LoadError> {
        match self {
            ShaderFile::Nir(text, options) => {
                Ok(ShaderFile::Nir(text, nir::Options { arguments: arguments.clone(), ..options }))
            }
            _ => Err(LoadError::Arguments),
        }
    }

    /// Texts of source files that positions refer to, if the file has them.
    pub fn source_texts(&self) -> Vec<SourceText> {
        match self {
            ShaderFile::Spirv(words) => spirv::source_texts(words),
            ShaderFile::Nir(text, options) => {
                vec![SourceText { file: options.file.clone(), text: (*text).to_owned() }]
            }
            ShaderFile::Text(_) => Vec::new(),
        }
    }

    /// Its entry points, in the order of the file.
    ///
    /// # Errors
    /// When it is not valid, or not supported.
    pub fn entry_points(&self) -> Result<Vec<EntryPointName>, LoadError> {
        match self {
            ShaderFile::Spirv(words) => Ok(Reader::default().entry_points(words)?),
            ShaderFile::Nir(..) | ShaderFile::Text(_) => {
                let mut shader = Shader::default();
                self.read_text(&mut shader)?;
                Ok(vec![EntryPointName { name: shader.info.name, stage: Some(shader.info.stage) }])
            }
        }
    }

    /// Reads one of the forms that have a single entry point.
    fn read_text(&self, shader: &mut Shader) -> Result<(), LoadError> {
        match self {
            ShaderFile::Nir(text, options) => Ok(nir::read(text, options, shader)?),
            ShaderFile::Text(text) => Ok(text::parse(text, shader)?),
            ShaderFile::Spirv(_) => Ok(()),
        }
    }

    /// An entry point as a valid shader.
    ///
    /// # Errors
    /// When the entry point does not exist, is not valid or is not supported.
    pub fn load(&self, options: &Options) -> Result<Shader, LoadError> {
        let mut shader = Shader::default();
        match self {
            ShaderFile::Spirv(words) => match Reader::default().read(words, options, &mut shader) {
                Err(SpirvError { cause: SpirvCause::EntryPoint, .. }) => return Err(LoadError::EntryPoint),
                result => result?,
            },
            _ if !options.specialization.is_empty() => return Err(LoadError::Specialization),
            ShaderFile::Nir(..) | ShaderFile::Text(_) => {
                self.read_text(&mut shader)?;
                let named = options.entry.as_ref().is_none_or(|name| *name == shader.info.name);
                if !named || options.stage.is_some_and(|stage| stage != shader.info.stage) {
                    return Err(LoadError::EntryPoint);
                }
            }
        }
        match validate(&shader) {
            Ok(()) => Ok(shader),
            Err(e) => {
                let listing = Listing::new(&shader);
                let line = e.inst.and_then(|inst| listing.line(e.func, inst));
                let text = line.map(|(_, text)| text.to_owned());
                Err(LoadError::Invalid(e, text))
            }
        }
    }
}
