//! Statistics of compiled code, as text and JSON.

use crate::json::Heading;
use serde::Serialize;
use std::fmt;
use unwedge_aco::{Compiled, cost, occupancy};
use unwedge_isa::amdgcn::Gpu;

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Statistics of compiled code.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeStatistics {
    /// Instructions.
    pub instructions: usize,
    /// Those among them that copy values between registers.
    pub copies: usize,
    /// Bytes of code.
    pub code_size: usize,
    /// Scalar registers, without `vcc`.
    pub scalar_registers: u16,
    /// Vector registers.
    pub vector_registers: u16,
    /// Bytes of LDS of a workgroup.
    pub lds: u32,
    /// Bytes of scratch of a lane.
    pub scratch: u32,
    /// Scalar registers of values that were spilled.
    pub spilled_scalar_registers: u32,
    /// Vector registers of values that were spilled.
    pub spilled_vector_registers: u32,
    /// Waves that a SIMD holds.
    pub waves: u16,
    /// Changes of instructions that combining made.
    pub combinations: u32,
    /// Estimated cycles of a wave.
    pub latency: u64,
    /// Estimated cycles of a SIMD per 64 lanes.
    pub inverse_throughput: u64,
}

impl CodeStatistics {
    /// Those of a shader with so many invocations in a workgroup; with `None`, waves count as full.
    pub(super) fn of(compiled: &Compiled, gpu: &Gpu, invocations: Option<u32>) -> CodeStatistics {
        let code = &compiled.code;
        let cost = cost::estimate(code, gpu, invocations);
        CodeStatistics {
            instructions: code.instructions,
            copies: code.copies,
            code_size: code.words.len() * 4,
            scalar_registers: code.registers.sgprs,
            vector_registers: code.registers.vgprs,
            lds: code.lds_bytes,
            scratch: code.scratch_bytes,
            spilled_scalar_registers: code.spills.sgprs,
            spilled_vector_registers: code.spills.vgprs,
            waves: occupancy::waves(gpu, code.registers),
            combinations: compiled.combinations,
            latency: cost.latency,
            inverse_throughput: cost.inverse_throughput,
        }
    }

    /// What makes the code slow, as sentences: `perfwarn`.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let spilled = [
            (self.spilled_scalar_registers, "scalar", "lanes of vector registers"),
            (self.spilled_vector_registers, "vector", "scratch memory"),
        ];
        for (count, bank, to) in spilled.into_iter().filter(|(count, ..)| *count > 0) {
            warnings.push(format!("values of {count} {bank} registers are spilled to {to}"));
        }
        if self.spilled_vector_registers == 0 && self.scratch > 0 {
            warnings.push(format!("local variables take {} bytes of scratch memory per lane", self.scratch));
        }
        if self.waves <= 2 {
            warnings.push(format!(
                "a SIMD holds {} waves because of {} vector and {} scalar registers",
                self.waves, self.vector_registers, self.scalar_registers
            ));
        }
        // ACO's own code has copies of a few percent.
        if self.copies * 10 > self.instructions {
            warnings.push(format!("{} of {} instructions are copies", self.copies, self.instructions));
        }
        warnings
    }
}

impl fmt::Display for CodeStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sgprs, vgprs] = [self.spilled_scalar_registers, self.spilled_vector_registers];
        writeln!(f, "instructions: {}", self.instructions)?;
        writeln!(f, "copies: {}", self.copies)?;
        writeln!(f, "code size: {} bytes", self.code_size)?;
        writeln!(f, "scalar registers: {}", self.scalar_registers)?;
        writeln!(f, "vector registers: {}", self.vector_registers)?;
        writeln!(f, "LDS: {} bytes", self.lds)?;
        writeln!(f, "scratch: {} bytes per lane", self.scratch)?;
        writeln!(f, "spilled: {sgprs} scalar, {vgprs} vector registers")?;
        writeln!(f, "waves per SIMD: {}", self.waves)?;
        writeln!(f, "estimated latency: {} cycles", self.latency)?;
        writeln!(f, "estimated inverse throughput: {} cycles per 64 lanes", self.inverse_throughput)
    }
}

/// A compiled shader, and what it did on the emulator.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct CompileReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'a str,
    lanes: u32,
    entry: &'a str,
    stage: &'a str,
    statistics: &'a CodeStatistics,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The instructions.
    code: Vec<super::listing::ListedInst<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<super::run::RunReport<'a>>,
}

impl super::CompileView {
    /// Statistics of the code, and what a run did, as a JSON object.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(
        &self,
        run: Option<&super::run::EmulationView>,
        out: &mut dyn std::io::Write,
    ) -> std::io::Result<()> {
        let statistics = self.statistics();
        let report = CompileReport {
            heading: Heading::of_plain_object("unwedge.aco-compile", SCHEMA),
            gpu: self.gpu.name(),
            lanes: self.gpu.lanes(),
            entry: &self.entry,
            stage: self.stage.name(),
            statistics: &statistics,
            warnings: statistics.warnings(),
            code: self.listing(),
            run: run.map(super::run::EmulationView::report),
        };
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)
    }
}

crate::schema::shapes!(object: CompileReport<'_>);
