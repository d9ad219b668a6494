//! The names that afuc needs, from the register database.
//!
//! Never: decodes; it translates names and offsets.

use super::{AfucNames, Firmware, SqeSpace};
use std::borrow::Cow;
use std::collections::HashMap;
use unwedge_base::Generation;
use unwedge_hw::{self as hw, Db};

/// A register database as afuc sees it.
pub struct DbNames<'d> {
    db: &'d Db,
    opcodes: HashMap<&'d str, u8>,
}

impl<'d> DbNames<'d> {
    /// The names of a database.
    pub fn new(db: &'d Db) -> DbNames<'d> {
        let mut opcodes = HashMap::new();
        for generation in (2..=7).rev().filter_map(Generation::from_number) {
            let packets = db.gpu(generation).enumeration("adreno_pm4_type3_packets");
            for (name, opcode) in packets.into_iter().flat_map(|packets| packets.iter()) {
                if let Ok(opcode) = u8::try_from(opcode) {
                    opcodes.entry(name).or_insert(opcode);
                }
            }
        }
        DbNames { db, opcodes }
    }

    fn gpu(&self, firmware: Firmware) -> hw::Gpu<'d> {
        let generation = match firmware.generation() {
            5 => Generation::A5xx,
            6 => Generation::A6xx,
            _ => Generation::A7xx,
        };
        self.db.gpu(generation)
    }

    fn space(&self, firmware: Firmware, space: SqeSpace) -> hw::Registers<'d> {
        let space = match (space, firmware) {
            (SqeSpace::Gpu, _) => hw::RegSpace::Gpu,
            (SqeSpace::Control, Firmware::A750) => hw::RegSpace::CpControlGen3,
            (SqeSpace::Control, _) => hw::RegSpace::CpControl,
            (SqeSpace::Pipe, _) => hw::RegSpace::CpPipe,
            (SqeSpace::Sqe, _) => hw::RegSpace::Sqe,
        };
        self.gpu(firmware).space(space)
    }
}

impl AfucNames for DbNames<'_> {
    fn register(&self, firmware: Firmware, space: SqeSpace, offset: u32) -> Option<Cow<'_, str>> {
        self.space(firmware, space).at(offset).map(|reg| Cow::Borrowed(reg.name()))
    }

    fn offset(&self, firmware: Firmware, space: SqeSpace, name: &str) -> Option<u32> {
        self.space(firmware, space).offset_of(name)
    }

    fn pipe_is_void(&self, firmware: Firmware, offset: u32) -> bool {
        let register = self.space(firmware, SqeSpace::Pipe).at(offset);
        register.and_then(hw::Reg::ty).is_some_and(|ty| ty.name() == "void")
    }

    fn packet(&self, firmware: Firmware, opcode: u8) -> Option<Cow<'_, str>> {
        self.gpu(firmware).packet_name(opcode).map(Cow::Borrowed)
    }

    fn opcode(&self, name: &str) -> Option<u8> {
        self.opcodes.get(name).copied()
    }
}
