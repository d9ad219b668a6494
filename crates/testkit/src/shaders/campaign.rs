//! Campaigns: one check for each of many seeds.

use super::checks::{
    NIR, Outcome, break_text, break_words, broken_nir, broken_spirv, broken_text, nir_options, random_forms,
    random_graphics, random_shader,
};
use super::generator::{Dialect, random};
use super::spirv;
use crate::mutate::Rng;
use unwedge_shader::front::nir;
use unwedge_shader::front::spirv::{Reader, words};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::print;

/// What a campaign checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Random shaders, before and after passes.
    Passes,
    /// Random shaders of graphics stages, before and after passes.
    Stages,
    /// Random shaders, as text and as SPIR-V.
    Forms,
    /// Broken SPIR-V modules.
    Spirv,
    /// Broken texts of NIR.
    Nir,
    /// Broken texts of the IR.
    Text,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 6] =
        [Subject::Passes, Subject::Stages, Subject::Forms, Subject::Spirv, Subject::Nir, Subject::Text];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Passes => "passes",
            Subject::Stages => "stages",
            Subject::Forms => "forms",
            Subject::Spirv => "spirv",
            Subject::Nir => "nir",
            Subject::Text => "text",
        }
    }
}

/// A campaign. It keeps what a compiler keeps between shaders.
pub struct Campaign {
    subject: Subject,
    /// Files that are broken beside random shaders.
    files: Vec<Vec<u8>>,
    /// How texts of NIR are read.
    options: nir::Options,
    reader: Reader,
    shader: Shader,
}

impl Campaign {
    /// A campaign over random shaders and files.
    pub fn new(subject: Subject, files: Vec<Vec<u8>>) -> Campaign {
        Campaign {
            subject,
            files,
            options: nir_options(),
            reader: Reader::default(),
            shader: Shader::default(),
        }
    }

    /// Checks one seed. What cannot be compared counts as refused.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&mut self, seed: u64) -> Result<Outcome, String> {
        let compared = |compared| if compared { Outcome::Valid } else { Outcome::Refused };
        let mut rng = Rng::new(seed);
        // Half of the seeds break a file, if there are any.
        let file = if rng.below(2) == 0 { rng.pick(&self.files).cloned() } else { None };
        match self.subject {
            Subject::Passes => random_shader(seed).map(compared),
            Subject::Stages => random_graphics(seed).map(compared),
            Subject::Forms => random_forms(seed).map(compared),
            Subject::Spirv => {
                let file = file.and_then(|bytes| words(&bytes).ok());
                let mut words = file.unwrap_or_else(|| spirv::module(&random(&mut rng, Dialect::Spirv)));
                break_words(&mut words, &mut rng);
                broken_spirv(&words, &mut self.reader, &mut self.shader)
            }
            Subject::Nir => {
                let file = file.and_then(|bytes| String::from_utf8(bytes).ok());
                let text = break_text(file.as_deref().unwrap_or(NIR), &mut rng);
                broken_nir(&text, &self.options, &mut self.shader)
            }
            Subject::Text => {
                let file = file.and_then(|bytes| String::from_utf8(bytes).ok());
                let text = file.unwrap_or_else(|| print(&random(&mut rng, Dialect::Full)));
                broken_text(&break_text(&text, &mut rng), &mut self.shader)
            }
        }
    }
}
