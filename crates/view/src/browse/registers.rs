//! Registers as the streams have written them before a packet. Never: those that a dump holds; these are its facts.

use super::page::{PageTables, stored_decoder};
use super::{RegisterGroup, RegisterRow};
use crate::around::unit;
use crate::streams::{RegisterSet, Walkable};
use unwedge_hw::{Palette, Variants};
use unwedge_stream::{Flow, Registers, Step, StepSink};

/// Registers of one group.
const MOST: usize = 1 << 16;

/// Takes the registers before a packet.
pub(super) struct StateBefore {
    packet: usize,
    packets: usize,
    registers: Option<Registers>,
}

impl StepSink for StateBefore {
    fn step(&mut self, registers: &Registers, step: &Step<'_>) -> Flow {
        if unit(step).is_some() {
            self.packets = self.packets.saturating_add(1);
            if self.packets == self.packet {
                self.registers = Some(registers.clone());
            }
        }
        if self.registers.is_some() { Flow::Skip } else { Flow::Continue }
    }
}

/// What a stream has written before a packet.
pub(super) fn before(stream: &Walkable<'_>, packet: usize, tables: &mut PageTables<'_>) -> RegisterGroup {
    let mut state = StateBefore { packet, packets: 0, registers: None };
    stream.walk(&mut state);
    let name = format!("{}, before packet {packet}", stream.name);
    let decoder = stored_decoder(stream.decoder);
    tables.prepare(decoder);
    let (Some(registers), Some(set)) = (state.registers, tables.registers(decoder)) else {
        return RegisterGroup { name, rows: Vec::new() };
    };
    let written = registers.iter_written().take(MOST);
    let rows = written.filter_map(|reg| Some(row(set, reg, registers.get(reg)?))).collect();
    RegisterGroup { name, rows }
}

fn row(set: RegisterSet<'_>, reg: u32, value: u32) -> RegisterRow {
    let meaning = set.ty(reg).map(|ty| {
        let mut out = Vec::new();
        ty.write(value.into(), &mut Variants::default(), &Palette::default(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    });
    let meaning = meaning.unwrap_or_default();
    RegisterRow { name: set.name(reg), value: format!("{value:#010x}"), meaning }
}
