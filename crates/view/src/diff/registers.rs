//! Registers that two dumps hold, compared by name. Never: registers that a stream writes.

use super::show::{RegisterPart, value_parts};
use crate::device;
use crate::intel::IntelDump;
use crate::intel::values::Meaning;
use crate::json::Hex;
use crate::streams::Family;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use unwedge_capture::Dump;
use unwedge_capture::amd::plain_name;
use unwedge_capture::intel::IntelRegister;
use unwedge_capture::msm::{Devcore, RegisterValue};
use unwedge_capture::umr::PrintedRegister;
use unwedge_hw::amd::Amd;
use unwedge_hw::intel::platform::EngineClass;
use unwedge_hw::{Db, Palette, RegSpace, Registers, ValueType};
use unwedge_postmortem::amd;

/// A register of a dump.
struct CapturedRegister<'d> {
    section: String,
    name: String,
    /// Which of those with this name: a FIFO is listed several times.
    nth: usize,
    value: u64,
    ty: Option<ValueType<'d>>,
    /// What it says, where no type says it.
    meaning: Option<String>,
}

/// A register whose values in two dumps are not the same.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RegisterDifference {
    #[serde(rename = "type")]
    line: &'static str,
    /// Whose register it is: `registers`, `rcs0`, `gfx_v10_0`.
    pub section: String,
    /// Its name.
    pub name: String,
    a: Hex,
    b: Hex,
    /// What differs of it.
    pub parts: Vec<RegisterPart>,
}

/// The registers of two dumps.
pub(super) struct ComparedRegisters {
    /// Registers that both have.
    pub both: usize,
    /// Those that differ, in the order of the first dump.
    pub differences: Vec<RegisterDifference>,
}

/// Which registers a dump has; `None` where its GPU is not known.
pub(super) fn family(dump: &Dump<'_>, facts: &Db) -> Option<Family> {
    match dump {
        Dump::Msm(dump) => device::generation(dump).map(Family::Adreno),
        Dump::I915(_) | Dump::Xe(_) => IntelDump::of(dump)?.graphics().version.map(Family::Intel),
        Dump::Amdgpu(dump) => amd::gfx_of_dump(dump, facts).map(Family::Amd),
        Dump::Radv(report) => amd::gfx_of_radv(report, facts).map(Family::Amd),
        Dump::Umr(text) => amd::gfx_of_umr(text, facts).map(Family::Amd),
    }
}

/// Compares the registers of two dumps of one family. `db` is the database of Adreno, `facts` that of AMD.
pub(super) fn compare([a, b]: [&Dump<'_>; 2], db: &Db, facts: &Db, palette: &Palette) -> ComparedRegisters {
    let key = |r: &CapturedRegister<'_>| (r.section.clone(), r.name.clone(), r.nth);
    let of_b: HashMap<_, _> = captured(b, db, facts).into_iter().map(|r| (key(&r), r)).collect();
    let mut compared = ComparedRegisters { both: 0, differences: Vec::new() };
    let mut seen = HashSet::new();
    for register in captured(a, db, facts) {
        let key = key(&register);
        let Some(other) = of_b.get(&key).filter(|_| seen.insert(key)) else { continue };
        compared.both += 1;
        if register.value != other.value {
            compared.differences.push(difference(register, other, palette));
        }
    }
    compared
}

fn difference(a: CapturedRegister<'_>, b: &CapturedRegister<'_>, palette: &Palette) -> RegisterDifference {
    let parts = match (&a.meaning, &b.meaning) {
        (None, None) => value_parts(a.ty, a.value, b.value, palette),
        (of_a, of_b) => {
            let text = |value: u64, meaning: &Option<String>| match meaning {
                Some(meaning) => format!("{value:#010x} ({meaning})"),
                None => format!("{value:#010x}"),
            };
            vec![RegisterPart { field: None, a: Some(text(a.value, of_a)), b: Some(text(b.value, of_b)) }]
        }
    };
    let hex = |value: u64| u32::try_from(value).map_or_else(|_| Hex::wide(value), Hex::dword);
    let name = if a.nth > 0 { format!("{} ({})", a.name, a.nth + 1) } else { a.name };
    RegisterDifference { line: "register", section: a.section, name, a: hex(a.value), b: hex(b.value), parts }
}

/// The registers of a dump, in its order.
fn captured<'d>(dump: &Dump<'_>, db: &'d Db, facts: &'d Db) -> Vec<CapturedRegister<'d>> {
    let mut list = RegisterList::default();
    match (dump, IntelDump::of(dump)) {
        (Dump::Msm(dump), _) => list.of_msm(dump, db),
        (Dump::Amdgpu(dump), _) => {
            let amd = amd::gfx_of_dump(dump, facts).map(|gfx| facts.amd_gpu(gfx));
            for block in &dump.ips {
                for (i, bank) in block.banks.iter().enumerate() {
                    let section = if i == 0 { block.name.to_string() } else { format!("{} {i}", block.name) };
                    for register in &bank.registers {
                        list.amd(amd, &section, &register.name, register.value);
                    }
                }
            }
        }
        (Dump::Radv(report), _) => {
            let amd = amd::gfx_of_radv(report, facts).map(|gfx| facts.amd_gpu(gfx));
            list.printed(amd, &report.registers);
        }
        (Dump::Umr(text), _) => {
            let amd = amd::gfx_of_umr(text, facts).map(|gfx| facts.amd_gpu(gfx));
            list.printed(amd, &text.registers);
        }
        (dump @ (Dump::I915(_) | Dump::Xe(_)), Some(intel)) => {
            if let Dump::I915(state) = dump {
                list.of_intel(intel, "device", EngineClass::Render, &state.registers);
            }
            for engine in intel.engines() {
                let class = engine.id().map_or(EngineClass::Render, |id| id.class);
                list.of_intel(intel, &crate::intel::engine_name(&engine.name), class, &engine.registers);
            }
        }
        (Dump::I915(_) | Dump::Xe(_), None) => {}
    }
    list.registers
}

/// Registers as they come, those of one name counted.
#[derive(Default)]
struct RegisterList<'d> {
    registers: Vec<CapturedRegister<'d>>,
    times: HashMap<(String, String), usize>,
}

impl<'d> RegisterList<'d> {
    fn push(
        &mut self,
        section: &str,
        name: String,
        value: u64,
        ty: Option<ValueType<'d>>,
        meaning: Option<String>,
    ) {
        let times = self.times.entry((section.to_owned(), name.clone())).or_default();
        let nth = *times;
        *times += 1;
        self.registers.push(CapturedRegister { section: section.to_owned(), name, nth, value, ty, meaning });
    }

    fn of_msm(&mut self, dump: &Devcore<'_>, db: &'d Db) {
        let Some(gpu) = device::gpu(dump, db) else { return };
        let sections = [
            ("registers", RegSpace::Gpu, &dump.registers),
            ("registers-gmu", RegSpace::Gmu, &dump.registers_gmu),
        ];
        for (section, space, values) in sections {
            self.of_space(section, gpu.space(space), values);
        }
    }

    /// Registers by offset; two dwords of one register are one value.
    fn of_space(&mut self, section: &str, space: Registers<'d>, values: &[RegisterValue]) {
        let mut values = values.iter().peekable();
        while let Some(low) = values.next() {
            let reg = space.at(low.reg);
            let wide = reg.is_some_and(|reg| reg.width() == 64 && reg.dword() == 0);
            let high = values.next_if(|next| wide && Some(next.reg) == low.reg.checked_add(1));
            let value = u64::from(low.value) | high.map_or(0, |high| u64::from(high.value) << 32);
            let name = match reg {
                Some(reg) if reg.dword() > 0 => format!("{}+{}", reg.name(), reg.dword()),
                Some(reg) => reg.name().to_owned(),
                None => format!("{:#07x}", low.reg),
            };
            let ty = reg.filter(|reg| reg.dword() == 0).and_then(|reg| reg.ty());
            self.push(section, name, value, ty, None);
        }
    }

    fn amd(&mut self, amd: Option<Amd<'d>>, section: &str, name: &str, value: u32) {
        let name = plain_name(name);
        let ty = amd.and_then(|amd| amd.register(name)).and_then(|register| register.ty());
        self.push(section, name.to_owned(), value.into(), ty, None);
    }

    fn printed(&mut self, amd: Option<Amd<'d>>, registers: &[PrintedRegister<'_>]) {
        for register in registers {
            if let Some(value) = register.value {
                self.amd(amd, "registers", &register.name, value);
            }
        }
    }

    fn of_intel(
        &mut self,
        dump: IntelDump<'_, '_>,
        section: &str,
        class: EngineClass,
        registers: &[IntelRegister<'_>],
    ) {
        let version = dump.graphics().version;
        for register in registers {
            let meaning = version.and_then(|version| Meaning::of(version, class, register, registers));
            let name = format!("{}{}", register.name, register.index);
            self.push(section, name, register.value, None, meaning.map(|meaning| meaning.to_string()));
        }
    }
}

crate::schema::shapes!(lines: RegisterDifference);
