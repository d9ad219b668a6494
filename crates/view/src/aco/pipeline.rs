//! Compiled pipelines: the programs of all stages of the hardware, linked, as code, statistics, and programs after phases.

use super::listing::ListedInst;
use super::statistics::CodeStatistics;
use super::{
    CodeForm, CompileView, CompileViewError, Options, PhaseRequest, PhaseTexts, SourceText, check_phases,
};
use crate::json::Heading;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use unwedge_aco::pipeline::{LinkedProgram, attribute_links, link_pipeline};
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{BackPhase, Compiled, Compiler, finish_with};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::{FIRST_LOCATION_SLOT, Shader, Stage};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;
/// `OFFSET` of `SPI_PS_INPUT_CNTL` for an attribute that no shader stores: it is the default value.
const DEFAULT_VALUE: u32 = 0x20;

/// A program of a pipeline.
#[derive(Debug)]
pub struct PipelineProgram {
    hardware: HardwareStage,
    /// Names of the stages in it.
    stages: Vec<&'static str>,
    code: CompileView,
}

/// A compiled pipeline.
#[derive(Debug)]
pub struct PipelineView {
    programs: Vec<PipelineProgram>,
    /// Slots of the attributes of the pixel shader, and their parameters.
    attributes: Vec<(u16, Option<u32>)>,
    gpu: Gpu,
}

/// Names of what runs in a program: `copy` of the shader that exports what a geometry shader has left.
fn names(program: &LinkedProgram) -> Vec<&'static str> {
    program.software.iter().map(|software| software.name()).collect()
}

fn heading(hardware: HardwareStage, stages: &[&str]) -> String {
    format!("{hardware} ({})", stages.join(", "))
}

impl PipelineProgram {
    /// The stage of the hardware and the shaders in it: `LSHS (vertex, tess_control)`.
    pub fn heading(&self) -> String {
        heading(self.hardware, &self.stages)
    }

    /// The stage of the hardware.
    pub fn hardware(&self) -> HardwareStage {
        self.hardware
    }

    /// Statistics of the code.
    pub fn statistics(&self) -> CodeStatistics {
        self.code.statistics()
    }

    /// The code in a form.
    ///
    /// # Errors
    ///
    /// A form that only kernels have.
    pub fn bytes(&self, form: CodeForm) -> Result<Vec<u8>, CompileViewError> {
        self.code.bytes(form)
    }
}

impl PipelineView {
    /// Links and compiles shaders, which may be in any order.
    ///
    /// # Errors
    ///
    /// Shaders that do not make a pipeline, and what is not compiled.
    pub fn of(shaders: Vec<Shader>, options: &Options) -> Result<PipelineView, CompileViewError> {
        let mut programs = Vec::new();
        let mut compiler = Compiler::new();
        for linked in link_pipeline(shaders, options)? {
            let code = CompileView {
                compiled: linked.compile(&mut compiler)?,
                gpu: options.gpu,
                entry: String::new(),
                workgroup_size: None,
                stage: linked.stages().next().unwrap_or(Stage::Vertex),
                prolog: None,
                epilog: None,
                texts: Vec::new(),
            };
            programs.push(PipelineProgram { hardware: linked.hardware, stages: names(&linked), code });
        }
        let all: Vec<&Compiled> = programs.iter().map(|program| &program.code.compiled).collect();
        let attributes = attribute_links(&all);
        Ok(PipelineView { programs, attributes, gpu: options.gpu })
    }

    /// The same, with texts of sources whose lines assembly shows.
    #[must_use]
    pub fn with_texts(mut self, texts: &[SourceText]) -> PipelineView {
        self.programs.iter_mut().for_each(|program| program.code.texts = texts.to_vec());
        self
    }

    /// Its programs, in the order in which the GPU runs them.
    pub fn programs(&self) -> &[PipelineProgram] {
        &self.programs
    }

    /// All programs as assembly, and how attributes of the pixel shader are linked.
    ///
    /// # Errors
    ///
    /// As those of [`PipelineProgram::bytes`].
    pub fn assembly(&self) -> Result<String, CompileViewError> {
        let mut text = String::new();
        for program in &self.programs {
            let _ = writeln!(text, "; {}", program.heading());
            if program.hardware == HardwareStage::Ps {
                text += &self.links();
            }
            text += &String::from_utf8_lossy(&program.bytes(CodeForm::Assembly)?);
        }
        Ok(text)
    }

    fn links(&self) -> String {
        let mut text = String::new();
        for (number, (slot, parameter)) in self.attributes.iter().enumerate() {
            let offset = parameter.unwrap_or(DEFAULT_VALUE);
            let _ = match slot.checked_sub(FIRST_LOCATION_SLOT) {
                Some(location) => {
                    writeln!(text, "; SPI_PS_INPUT_CNTL_{number} OFFSET {offset:#x} (location {location})")
                }
                None => writeln!(text, "; SPI_PS_INPUT_CNTL_{number} OFFSET {offset:#x} (slot {slot})"),
            };
        }
        text
    }

    /// Statistics of all programs, as a JSON object.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let statistics: Vec<CodeStatistics> = self.programs.iter().map(PipelineProgram::statistics).collect();
        let report = PipelineReport {
            heading: Heading::of_plain_object("unwedge.aco-pipeline", SCHEMA),
            gpu: self.gpu.name(),
            lanes: self.gpu.lanes(),
            programs: self
                .programs
                .iter()
                .zip(&statistics)
                .map(|(program, statistics)| ProgramReport {
                    hardware: program.hardware.name(),
                    stages: &program.stages,
                    statistics,
                    warnings: statistics.warnings(),
                    code: program.code.listing(),
                })
                .collect(),
            attributes: self
                .attributes
                .iter()
                .map(|(slot, parameter)| AttributeReport { slot: *slot, parameter: *parameter })
                .collect(),
        };
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)
    }
}

/// A compiled pipeline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PipelineReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'a str,
    lanes: u32,
    /// In the order in which the GPU runs them.
    programs: Vec<ProgramReport<'a>>,
    /// Of the pixel shader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<AttributeReport>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProgramReport<'a> {
    /// The stage of the hardware.
    hardware: &'a str,
    /// The shaders that run in it.
    stages: &'a [&'static str],
    statistics: &'a CodeStatistics,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The instructions.
    code: Vec<ListedInst<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AttributeReport {
    /// The slot of the interface: 32 plus a location, or that of a built-in.
    slot: u16,
    /// The parameter that it is linked with; absent if no shader stores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<u32>,
}

crate::schema::shapes!(object: PipelineReport<'_>);

/// The programs of a pipeline after phases, as text.
///
/// # Errors
///
/// An unknown phase, shaders that do not make a pipeline, or what keeps the first program from being compiled before any was printed.
pub fn print_pipeline_phases(
    shaders: Vec<Shader>,
    options: &Options,
    request: &PhaseRequest,
) -> Result<String, CompileViewError> {
    check_phases(request)?;
    let mut shown = String::new();
    for linked in link_pipeline(shaders, options)? {
        let mut texts = PhaseTexts::of(request);
        let masked = linked.front(&mut |phase, program| texts.add(phase, program));
        let finished = masked.and_then(|mut masked| {
            let mut watch = |phase: BackPhase, program: &_| texts.add(phase.name(), program);
            let finished = finish_with(&mut masked.program, &options.limits, options.passes, &mut watch);
            finished.map_err(|error| linked.error(error.into()))
        });
        if !texts.shown.is_empty() {
            let _ = writeln!(shown, "; {}", heading(linked.hardware, &names(&linked)));
            shown += &texts.shown;
        }
        match finished {
            Ok(_) => {}
            Err(error) if shown.is_empty() => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(shown)
}
