//! Whether the entry points of a file are valid.

use crate::json::Heading;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_shader::front::spirv::{Options, SpirvError};
use unwedge_shader::front::{LoadError, ShaderFile, SourceError};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// What the check of an entry point gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It is valid.
    Valid,
    /// Something that it needs is not supported, so that it was not checked to its end.
    Unsupported,
    /// It breaks a rule.
    Invalid,
}

/// An entry point and what the check gave; without a name if it is the file as a whole.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Checked {
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    validity: Validity,
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Checked {
    fn failed(error: &LoadError) -> Checked {
        let (word, line, reason) = match error {
            LoadError::Spirv(SpirvError { offset, cause }) => (Some(*offset), None, cause.to_string()),
            LoadError::Text(e) => (None, Some(e.line), e.reason.clone()),
            LoadError::Nir(e) => (None, Some(e.line), e.cause.to_string()),
            LoadError::Source(SourceError::Line { line, column, message }) => {
                (None, Some(*line), format!("column {column}: {message}"))
            }
            other => (None, None, other.to_string()),
        };
        let validity = if error.is_invalid() { Validity::Invalid } else { Validity::Unsupported };
        Checked { entry: None, stage: None, validity, word, line, reason: Some(reason) }
    }
}

/// A file with the validity of its entry points.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidityView {
    #[serde(flatten)]
    heading: Heading<'static>,
    file: String,
    validity: Validity,
    entry_points: Vec<Checked>,
}

impl ValidityView {
    /// Checks the entry points of a file, or the one that the options name.
    ///
    /// # Errors
    /// When the file is not of shaders, or the options do not fit it.
    pub fn of(
        name: &str,
        file: Result<ShaderFile<'_>, LoadError>,
        options: &Options,
    ) -> Result<ValidityView, LoadError> {
        let mut checked = Vec::new();
        match file.and_then(|file| Ok((file.entry_points()?, file))) {
            Ok((points, file)) => {
                let wanted = |name: &str| options.entry.as_ref().is_none_or(|entry| entry == name);
                for point in points.into_iter().filter(|point| wanted(&point.name)) {
                    let only =
                        Options { entry: Some(point.name.clone()), stage: point.stage, ..options.clone() };
                    let result = match file.load(&only) {
                        Ok(_) => Checked {
                            entry: None,
                            stage: None,
                            validity: Validity::Valid,
                            word: None,
                            line: None,
                            reason: None,
                        },
                        Err(e @ (LoadError::Specialization | LoadError::OtherFile)) => return Err(e),
                        Err(e) => Checked::failed(&e),
                    };
                    let stage = point.stage.map(|stage| stage.name());
                    checked.push(Checked { entry: Some(point.name), stage, ..result });
                }
            }
            Err(LoadError::OtherFile) => return Err(LoadError::OtherFile),
            Err(e) => checked.push(Checked::failed(&e)),
        }
        let validity = checked.iter().map(|point| point.validity).max().ok_or(LoadError::EntryPoint)?;
        Ok(ValidityView {
            heading: Heading::of_plain_object("unwedge.shader-validate", SCHEMA),
            file: name.to_owned(),
            validity,
            entry_points: checked,
        })
    }

    /// The worst of all entry points.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// A line for each entry point.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for point in &self.entry_points {
            write!(out, "{}: ", self.file)?;
            if let Some(entry) = &point.entry {
                write!(out, "{} `{entry}`: ", point.stage.unwrap_or("entry point"))?;
            }
            if let Some(word) = point.word {
                write!(out, "word {word}: ")?;
            }
            if let Some(line) = point.line {
                write!(out, "line {line}: ")?;
            }
            writeln!(out, "{}", point.reason.as_deref().unwrap_or("valid"))?;
        }
        Ok(())
    }

    /// The same as a JSON object.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }
}

crate::schema::shapes!(object: ValidityView);
