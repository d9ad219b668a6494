//! A dump laid out for questioning: registers by name, memory, evidence.
//!
//! Never: a judgement. Register names come from the database; a register the dump or the database lacks is `None`,
//! never zero.

use unwedge_base::Memory;
use unwedge_capture::msm::{Devcore, Indexed, RegisterValue, Ring};
use unwedge_hw::{DecodedValue, Gpu, RegSpace, Registers, Variants};

use crate::adreno::device;
use crate::adreno::sqe::SqeStat;
use crate::args::{Arg, Args};
use crate::reads::RegisterReads;
use crate::report::{Evidence, Fact, FieldFact};

/// One register section of a dump, by name.
pub struct SectionValues<'a> {
    section: &'static str,
    space: Registers<'a>,
    wide: bool,
    sorted: Vec<RegisterValue>,
}

impl<'a> SectionValues<'a> {
    fn new(
        section: &'static str,
        space: Registers<'a>,
        wide: bool,
        values: &[RegisterValue],
    ) -> SectionValues<'a> {
        let mut sorted = values.to_vec();
        sorted.sort_by_key(|r| r.reg);
        SectionValues { section, space, wide, sorted }
    }

    /// The dump does not have this section.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The value of the dword at this offset; the first one, should the dump have several.
    pub fn at(&self, reg: u32) -> Option<u32> {
        let i = self.sorted.partition_point(|r| r.reg < reg);
        self.sorted.get(i).filter(|r| r.reg == reg).map(|r| r.value)
    }

    /// The value of a register by name.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.at(self.space.offset_of(name)?)
    }

    /// The value of a register that holds an address: both dwords on GPUs with 64-bit addresses.
    pub fn address(&self, name: &str) -> Option<u64> {
        let low = self.space.offset_of(name)?;
        let value = u64::from(self.at(low)?);
        if !self.wide {
            return Some(value);
        }
        Some(value | u64::from(self.at(low.checked_add(1)?)?) << 32)
    }

    /// One field of a register, shifted down.
    pub fn field(&self, name: &str, field: &str) -> Option<u64> {
        let reg = self.space.offset_of(name)?;
        self.space.at(reg)?.ty()?.field(u64::from(self.at(reg)?), field)
    }

    /// The names of the single-bit fields that are set.
    pub fn flags(&self, name: &str) -> Option<Vec<&'a str>> {
        Some(self.flags_of(name, self.get(name)?))
    }

    /// The names of the single-bit fields that are set in a value of this register.
    pub fn flags_of(&self, name: &str, value: u32) -> Vec<&'a str> {
        let ty = self.space.offset_of(name).and_then(|reg| self.space.at(reg)).and_then(|reg| reg.ty());
        let Some(DecodedValue::Fields(fields)) =
            ty.map(|ty| ty.decode(u64::from(value), &mut Variants::default()))
        else {
            return Vec::new();
        };
        let set = fields.iter().filter(|f| f.low == f.high && f.raw != 0 && !f.name.is_empty());
        set.map(|f| f.name).collect()
    }

    /// What a register says, as evidence. `None` if the dump does not have it.
    pub fn evidence(&self, name: &str) -> Option<Evidence> {
        Some(seen(self.section, register(name, u64::from(self.get(name)?))))
    }

    /// What an address register says, as evidence.
    pub fn address_evidence(&self, name: &str) -> Option<Evidence> {
        let value = self.address(name)?;
        Some(Evidence { iova: Some(value), ..seen(self.section, register(name, value)) })
    }

    /// The flags of a register, as evidence.
    pub fn flags_evidence(&self, name: &str) -> Option<Evidence> {
        let value = self.get(name)?;
        Some(seen(self.section, flags(name, value, &self.flags_of(name, value))))
    }

    /// One field of a register, as evidence.
    pub fn field_evidence(&self, name: &str, field: &'static str) -> Option<Evidence> {
        let value = self.field(name, field)?;
        let fields = vec![FieldFact { name: field.into(), value, meaning: None }];
        let whole = u64::from(self.get(name)?);
        Some(seen(self.section, Fact::Register { name: name.to_owned().into(), value: whole, fields }))
    }
}

/// Evidence without an address.
pub(super) fn seen(section: impl Into<String>, fact: Fact) -> Evidence {
    Evidence { section: section.into(), fact, iova: None, span: None }
}

/// A register's value.
pub(super) fn register(name: impl Into<String>, value: u64) -> Fact {
    Fact::Register { name: name.into().into(), value, fields: Vec::new() }
}

/// A register with the names of the bits that are set.
pub(super) fn flags(name: &str, value: u32, set: &[&str]) -> Fact {
    let fields = set.iter().map(|&flag| FieldFact { name: flag.to_owned().into(), value: 1, meaning: None });
    Fact::Register { name: name.to_owned().into(), value: u64::from(value), fields: fields.collect() }
}

/// A field of a section.
pub(super) fn field(name: &'static str, value: Arg) -> Fact {
    Fact::Field { name: name.into(), value }
}

/// A dump with its memory decoded and its registers ready for look-up by name.
pub struct AdrenoCase<'a> {
    /// The dump.
    pub dump: &'a Devcore<'a>,
    /// The database view of its GPU.
    pub gpu: Gpu<'a>,
    /// `registers:`
    pub regs: SectionValues<'a>,
    /// `registers-gmu:`
    pub gmu: SectionValues<'a>,
    /// Buffers and rings.
    pub memory: Memory,
    /// What the SQE was doing (a6xx on).
    pub sqe: Option<SqeStat>,
    /// What the registers are worth. Those of a GPU that did not answer are not in `regs`.
    pub reads: RegisterReads,
}

impl<'a> AdrenoCase<'a> {
    /// Lays out a dump of a GPU.
    pub fn new(dump: &'a Devcore<'a>, gpu: Gpu<'a>) -> AdrenoCase<'a> {
        let wide = gpu.generation().is_64bit();
        let sqe = indexed(dump, "CP_SQE_STAT").and_then(|(words, _)| SqeStat::parse(&words));
        let reads = device::reads(dump, gpu);
        let registers = if reads == RegisterReads::Answered { dump.registers.as_slice() } else { &[] };
        AdrenoCase {
            dump,
            gpu,
            regs: SectionValues::new("registers", gpu.space(RegSpace::Gpu), wide, registers),
            gmu: SectionValues::new("registers-gmu", gpu.space(RegSpace::Gmu), wide, &dump.registers_gmu),
            memory: dump.memory(),
            sqe,
            reads,
        }
    }

    /// Lays out what of a dump can be read without knowing its GPU; `gpu` stands in and names nothing.
    pub fn without_registers(dump: &'a Devcore<'a>, gpu: Gpu<'a>) -> AdrenoCase<'a> {
        let wide = gpu.generation().is_64bit();
        let none = |section, space| SectionValues::new(section, gpu.space(space), wide, &[]);
        AdrenoCase {
            dump,
            gpu,
            regs: none("registers", RegSpace::Gpu),
            gmu: none("registers-gmu", RegSpace::Gmu),
            memory: dump.memory(),
            sqe: None,
            reads: RegisterReads::Answered,
        }
    }

    /// The dwords of an indexed-registers block, whatever the kernel called it.
    pub fn indexed(&self, name: &str) -> Option<(Vec<u32>, Evidence)> {
        let (words, block) = indexed(self.dump, name)?;
        let fact = Fact::Dwords {
            level: None,
            first: Some(0),
            count: words.len() as u64,
            words: Vec::new(),
            packet: None,
        };
        let evidence = Evidence { span: Some(block.span), ..seen(format!("indexed-registers {name}"), fact) };
        Some((words, evidence))
    }
}

fn indexed<'d>(dump: &'d Devcore<'_>, name: &str) -> Option<(Vec<u32>, &'d Indexed<'d>)> {
    let block = dump.indexed.iter().find(|b| b.canonical_name() == name)?;
    let (words, _) = block.data.as_ref()?.decode_known();
    (!words.is_empty()).then_some((words, block))
}

/// Where a ring's pointers and fences are.
pub fn ring_evidence(ring: &Ring<'_>) -> Evidence {
    let number = |n: Option<u32>| n.map(|n| Arg::Number(u64::from(n)));
    let fences = ring.last_fence.zip(ring.retired_fence);
    let args = Args::new()
        .with_some("last-fence", number(fences.map(|f| f.0)))
        .with_some("retired-fence", number(fences.map(|f| f.1)))
        .with_some("rptr", number(ring.rptr))
        .with_some("wptr", number(ring.wptr));
    let evidence = seen(format!("ringbuffer {}", ring.id), Fact::Record(args));
    Evidence { iova: Some(ring.iova), span: Some(ring.span), ..evidence }
}
