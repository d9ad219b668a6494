//! Machine code, decoded once into what is executed.

use super::cross::CrossLaneOp;
use super::decoded::DecodedInst;
use super::export::ExportOp;
use super::flow::FlowOp;
use super::hazard::HazardClass;
use super::interp::InterpolateOp;
use super::matrix::MatrixProduct;
use super::mfma::MfmaProduct;
use super::rays::RayOp;
use super::scalar::ScalarOp;
use super::scaled::ScaledConversion;
use super::vector::VectorOp;
use super::{buffer, ds, flat, image, smem};
use unwedge_isa::amdgcn::model::{Class, Format, Trait};
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, Operation, codec, text};

/// UnitOp an instruction is executed as.
#[derive(Debug)]
pub(super) enum UnitOp {
    Vector(Box<VectorOp>),
    Dual(Box<[VectorOp; 2]>),
    Scalar(ScalarOp),
    Cross(CrossLaneOp),
    Matrix(Box<MatrixProduct>),
    Mfma(Box<MfmaProduct>),
    Scaled(Box<ScaledConversion>),
    Flow(FlowOp),
    Smem(smem::SmemOp),
    Buffer(Box<buffer::BufferOp>),
    Flat(Box<flat::FlatOp>),
    Ds(Box<ds::DsOp>),
    Image(Box<image::ImageOp>),
    Rays(RayOp),
    Interp(Box<InterpolateOp>),
    Export(Box<ExportOp>),
    /// Neither computes nor accesses anything that is emulated: hints, caches, priorities.
    Nothing,
    Unknown,
}

/// One instruction, and what executes it.
#[derive(Debug)]
pub(super) struct ProgramStep {
    pub(super) decoded: DecodedInst,
    pub(super) op: UnitOp,
    /// UnitOp it is to hazards.
    pub(super) hazard: HazardClass,
}

/// Machine code of one GPU.
#[derive(Debug)]
pub struct Program {
    pub(super) gpu: Gpu,
    pub(super) steps: Vec<ProgramStep>,
    /// The step at each dword, if one was decoded there.
    index: Vec<u32>,
    /// How many vector registers it names, accumulation registers being those from 256 on.
    pub(super) vgprs: u16,
    /// Where the code lies.
    pub(super) base: u64,
}

const NONE: u32 = u32::MAX;

/// The most vector and accumulation registers that a program can name.
const VGPRS: u16 = 512;

/// The most registers an image address has.
const ADDRESS: u16 = 13;

impl Program {
    /// Decodes code that lies at an address: everything in its order, and again where a branch goes into the midst.
    pub fn new(words: &[u32], base: u64, gpu: Gpu) -> Program {
        let mut program = Program { gpu, steps: Vec::new(), index: vec![NONE; words.len()], vgprs: 1, base };
        let mut at = 0;
        while at < words.len() {
            at = program.decode(words, at).unwrap_or(at + 1);
        }
        let mut done = 0;
        while done < program.steps.len() {
            let from = done;
            done = program.steps.len();
            let targets: Vec<u32> =
                program.steps[from..done].iter().filter_map(ProgramStep::target).collect();
            for target in targets {
                let mut at = target as usize / 4;
                while program.index.get(at) == Some(&NONE) {
                    match program.decode(words, at) {
                        Some(next) => at = next,
                        None => break,
                    }
                }
            }
        }
        program
    }

    fn decode(&mut self, words: &[u32], at: usize) -> Option<usize> {
        let decoded = codec::decode_executed(words.get(at..)?, &self.gpu)?;
        let next = at + usize::from(decoded.dwords);
        let inst = decoded.inst;
        let (at, next) = (u32::try_from(at * 4).ok()?, next as u32 * 4);
        let step = ProgramStep {
            decoded: DecodedInst::new(inst, at, next, &self.gpu),
            op: unit_op(&inst, &self.gpu),
            hazard: HazardClass::of(&inst),
        };
        for (slot, operand) in inst.written() {
            match operand {
                // Before gfx10 nothing says how many registers an address has.
                Operand::Reg { reg, .. } if slot.class == Class::ImageAddr => {
                    self.vgprs = self.vgprs.max(reg.index() + ADDRESS);
                }
                Operand::Reg { reg, dwords, .. } => {
                    let end = reg.lane_number().map_or(0, |n| n + u16::from(dwords));
                    self.vgprs = self.vgprs.max(end);
                }
                Operand::List(_) => self.vgprs = self.vgprs.max(256),
                _ => {}
            }
        }
        if inst.row().traits.has(Trait::Relative) {
            self.vgprs = self.vgprs.max(256);
        }
        self.vgprs = self.vgprs.min(VGPRS);
        self.index[at as usize / 4] = self.steps.len() as u32;
        self.steps.push(step);
        Some(next as usize / 4)
    }

    /// The step at an offset in bytes.
    pub(super) fn step(&self, offset: u32) -> Option<&ProgramStep> {
        let at = self.index.get(offset as usize / 4).filter(|_| offset.is_multiple_of(4))?;
        self.steps.get(*at as usize)
    }

    /// The text of the instruction at an offset in bytes.
    pub fn text(&self, offset: u32) -> Option<String> {
        let mut out = String::new();
        text::write(&self.step(offset)?.decoded.inst, &self.gpu, &mut out);
        Some(out)
    }

    /// The offset behind the instruction at an offset.
    pub fn following(&self, offset: u32) -> Option<u32> {
        Some(self.step(offset)?.decoded.next)
    }

    /// The name of an export's target.
    pub fn export_target(&self, code: u8) -> Option<String> {
        text::export_target(code.into(), &self.gpu)
    }

    /// The GPU that it is for.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Mnemonics in it that are not emulated, each once.
    pub fn not_emulated(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self
            .steps
            .iter()
            .filter(|step| matches!(step.op, UnitOp::Unknown))
            .map(|step| step.decoded.inst.row().name)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl ProgramStep {
    /// Where a direct branch goes.
    fn target(&self) -> Option<u32> {
        let relative = self.decoded.inst.written().find_map(|(slot, operand)| match operand {
            Operand::Imm(value) if slot.class == Class::Label => Some(value),
            _ => None,
        })?;
        self.decoded.next.checked_add_signed(relative.checked_mul(4)?)
    }
}

/// UnitOp an instruction is executed as.
fn unit_op(inst: &Inst, gpu: &Gpu) -> UnitOp {
    let row = inst.row();
    let made = match row.operation {
        Operation::Control(op) => FlowOp::new(op, inst).map(UnitOp::Flow),
        Operation::Scalar(_) | Operation::ScalarFloat(_) => ScalarOp::new(inst).map(UnitOp::Scalar),
        Operation::Compare(..) if matches!(row.format, Format::Sopc | Format::Sopk) => {
            ScalarOp::new(inst).map(UnitOp::Scalar)
        }
        Operation::Integer(_)
        | Operation::Float(_)
        | Operation::Minmax(_)
        | Operation::Convert(_)
        | Operation::Transcendental(_)
        | Operation::Packed(_)
        | Operation::Compare(..) => VectorOp::new(inst, gpu).map(|vector| UnitOp::Vector(Box::new(vector))),
        Operation::Dual(_) => VectorOp::dual(inst).map(|halves| UnitOp::Dual(Box::new(halves))),
        Operation::Lanes(op) => CrossLaneOp::new(op, inst).map(UnitOp::Cross),
        Operation::Matrix(op) => {
            MatrixProduct::new(op, inst, gpu).map(|matrix| UnitOp::Matrix(Box::new(matrix)))
        }
        Operation::Mfma(_) => MfmaProduct::new(inst, gpu).map(|product| UnitOp::Mfma(Box::new(product))),
        Operation::Scaled(op) => ScaledConversion::new(op, inst).map(|op| UnitOp::Scaled(Box::new(op))),
        Operation::Interp(op) => {
            InterpolateOp::new(op, inst, gpu.generation()).map(|interp| UnitOp::Interp(Box::new(interp)))
        }
        Operation::Export => ExportOp::new(inst).map(|export| UnitOp::Export(Box::new(export))),
        Operation::Memory | Operation::Atomic(_) => access(inst, gpu),
        Operation::Idle => Some(UnitOp::Nothing),
        Operation::Unknown => None,
    };
    made.unwrap_or(UnitOp::Unknown)
}

/// UnitOp accesses memory.
fn access(inst: &Inst, gpu: &Gpu) -> Option<UnitOp> {
    match inst.row().format {
        Format::Smem => smem::SmemOp::new(inst, gpu).map(UnitOp::Smem),
        Format::Mubuf | Format::Mtbuf | Format::Vbuffer => {
            buffer::BufferOp::new(inst, gpu).map(|access| UnitOp::Buffer(Box::new(access)))
        }
        Format::Flat | Format::Global | Format::Scratch => {
            flat::FlatOp::new(inst).map(|access| UnitOp::Flat(Box::new(access)))
        }
        Format::Ds => ds::DsOp::new(inst).map(|access| UnitOp::Ds(Box::new(access))),
        Format::Mimg | Format::Vimage | Format::Vsample => {
            let access = image::ImageOp::new(inst, gpu).map(|access| UnitOp::Image(Box::new(access)));
            access.or_else(|| RayOp::new(inst, gpu).map(UnitOp::Rays))
        }
        _ => None,
    }
}
