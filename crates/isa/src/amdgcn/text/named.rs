//! Values that are made of named parts: messages, hardware registers, counters.
//!
//! Facts: the names and fields LLVM 19 has per generation, tried for every value.

use super::line::LineBuf;
use super::modifiers::one_of;
use super::parse::{ParseError, ParseRule};
use super::scan::{ExprValue, LineScan};
use super::{SymbolValue, Symbols};
use crate::amdgcn::model::{Class, OperandSlot};
use crate::amdgcn::waits::{self, ImmediateField};
use crate::amdgcn::{Gfx, Gpu};

/// A name of a value in some generations.
type NamedValue = (&'static str, i32, Gfx, Gfx);

/// The name of a value on a GPU.
fn name_of(table: &[NamedValue], value: i32, gpu: &Gpu) -> Option<&'static str> {
    let generation = gpu.generation();
    let found =
        table.iter().find(|(_, v, since, until)| *v == value && (*since..=*until).contains(&generation));
    found.map(|(name, ..)| *name)
}

/// The value of a name on a GPU.
fn value_of(table: &[NamedValue], name: &str, gpu: &Gpu) -> Option<i32> {
    let generation = gpu.generation();
    let found =
        table.iter().find(|(n, _, since, until)| *n == name && (*since..=*until).contains(&generation));
    found.map(|(_, value, ..)| *value)
}

/// Hardware registers. Where a number has two names, the first is written.
#[rustfmt::skip]
const HWREGS: &[NamedValue] = &[
    ("HW_REG_MODE", 1, Gfx::Gfx6, Gfx::Gfx12),
    ("HW_REG_STATUS", 2, Gfx::Gfx6, Gfx::Gfx12),
    ("HW_REG_TRAPSTS", 3, Gfx::Gfx6, Gfx::Gfx11_5),
    ("HW_REG_HW_ID", 4, Gfx::Gfx6, Gfx::Gfx950),
    ("HW_REG_STATE_PRIV", 4, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_GPR_ALLOC", 5, Gfx::Gfx6, Gfx::Gfx12),
    ("HW_REG_LDS_ALLOC", 6, Gfx::Gfx6, Gfx::Gfx12),
    ("HW_REG_IB_STS", 7, Gfx::Gfx6, Gfx::Gfx12),
    ("HW_REG_PERF_SNAPSHOT_DATA", 10, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_PERF_SNAPSHOT_PC_LO", 11, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_PERF_SNAPSHOT_PC_HI", 12, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_SH_MEM_BASES", 15, Gfx::Gfx9, Gfx::Gfx11_5),
    ("HW_REG_PERF_SNAPSHOT_DATA1", 15, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_TBA_LO", 16, Gfx::Gfx9, Gfx::Gfx10_3),
    ("HW_REG_PERF_SNAPSHOT_DATA2", 16, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_TBA_HI", 17, Gfx::Gfx9, Gfx::Gfx10_3),
    ("HW_REG_EXCP_FLAG_PRIV", 17, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_TMA_LO", 18, Gfx::Gfx9, Gfx::Gfx10_3),
    ("HW_REG_PERF_SNAPSHOT_PC_LO", 18, Gfx::Gfx11, Gfx::Gfx11_5),
    ("HW_REG_EXCP_FLAG_USER", 18, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_TMA_HI", 19, Gfx::Gfx9, Gfx::Gfx10_3),
    ("HW_REG_PERF_SNAPSHOT_PC_HI", 19, Gfx::Gfx11, Gfx::Gfx11_5),
    ("HW_REG_TRAP_CTRL", 19, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_XCC_ID", 20, Gfx::Gfx940, Gfx::Gfx950),
    ("HW_REG_SQ_PERF_SNAPSHOT_DATA", 21, Gfx::Gfx940, Gfx::Gfx950),
    ("HW_REG_SQ_PERF_SNAPSHOT_DATA1", 22, Gfx::Gfx940, Gfx::Gfx950),
    ("HW_REG_SQ_PERF_SNAPSHOT_PC_LO", 23, Gfx::Gfx940, Gfx::Gfx950),
    ("HW_REG_SQ_PERF_SNAPSHOT_PC_HI", 24, Gfx::Gfx940, Gfx::Gfx950),
    ("HW_REG_FLAT_SCR_LO", 20, Gfx::Gfx10, Gfx::Gfx11_5),
    ("HW_REG_SCRATCH_BASE_LO", 20, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_FLAT_SCR_HI", 21, Gfx::Gfx10, Gfx::Gfx11_5),
    ("HW_REG_SCRATCH_BASE_HI", 21, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_XNACK_MASK", 22, Gfx::Gfx10, Gfx::Gfx10),
    ("HW_REG_HW_ID1", 23, Gfx::Gfx10, Gfx::Gfx12),
    ("HW_REG_HW_ID", 23, Gfx::Gfx10, Gfx::Gfx12),
    ("HW_REG_HW_ID2", 24, Gfx::Gfx10, Gfx::Gfx12),
    ("HW_REG_POPS_PACKER", 25, Gfx::Gfx10, Gfx::Gfx10_3),
    ("HW_REG_PERF_SNAPSHOT_DATA", 27, Gfx::Gfx11, Gfx::Gfx11_5),
    ("HW_REG_SHADER_CYCLES", 29, Gfx::Gfx10_3, Gfx::Gfx11_5),
    ("HW_REG_SHADER_CYCLES_LO", 29, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_SHADER_CYCLES", 29, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_SHADER_CYCLES_HI", 30, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_DVGPR_ALLOC_LO", 31, Gfx::Gfx12, Gfx::Gfx12),
    ("HW_REG_DVGPR_ALLOC_HI", 32, Gfx::Gfx12, Gfx::Gfx12),
];

const MSG_GS: i32 = 2;
const MSG_GS_DONE: i32 = 3;
const MSG_SYSMSG: i32 = 15;

/// Messages.
#[rustfmt::skip]
const MESSAGES: &[NamedValue] = &[
    ("MSG_INTERRUPT", 1, Gfx::Gfx6, Gfx::Gfx12),
    ("MSG_GS", MSG_GS, Gfx::Gfx6, Gfx::Gfx10_3),
    ("MSG_HS_TESSFACTOR", 2, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_GS_DONE", MSG_GS_DONE, Gfx::Gfx6, Gfx::Gfx10_3),
    ("MSG_DEALLOC_VGPRS", 3, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_SAVEWAVE", 4, Gfx::Gfx8, Gfx::Gfx10_3),
    ("MSG_STALL_WAVE_GEN", 5, Gfx::Gfx9, Gfx::Gfx11_5),
    ("MSG_HALT_WAVES", 6, Gfx::Gfx9, Gfx::Gfx11_5),
    ("MSG_ORDERED_PS_DONE", 7, Gfx::Gfx9, Gfx::Gfx10_3),
    ("MSG_EARLY_PRIM_DEALLOC", 8, Gfx::Gfx9, Gfx::Gfx10_3),
    ("MSG_GS_ALLOC_REQ", 9, Gfx::Gfx9, Gfx::Gfx12),
    ("MSG_GET_DOORBELL", 10, Gfx::Gfx9, Gfx::Gfx10_3),
    ("MSG_GET_DDID", 11, Gfx::Gfx10, Gfx::Gfx10_3),
    ("MSG_SYSMSG", MSG_SYSMSG, Gfx::Gfx6, Gfx::Gfx10_3),
    ("MSG_RTN_GET_DOORBELL", 128, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_DDID", 129, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_TMA", 130, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_REALTIME", 131, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_SAVE_WAVE", 132, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_TBA", 133, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_TBA_TO_PC", 134, Gfx::Gfx11, Gfx::Gfx12),
    ("MSG_RTN_GET_SE_AID_ID", 135, Gfx::Gfx12, Gfx::Gfx12),
];

/// Operations of system messages.
#[rustfmt::skip]
const SYSTEM: &[NamedValue] = &[
    ("SYSMSG_OP_ECC_ERR_INTERRUPT", 1, Gfx::Gfx6, Gfx::Gfx12),
    ("SYSMSG_OP_REG_RD", 2, Gfx::Gfx6, Gfx::Gfx12),
    ("SYSMSG_OP_HOST_TRAP_ACK", 3, Gfx::Gfx6, Gfx::Gfx8),
    ("SYSMSG_OP_TTRACE_PC", 4, Gfx::Gfx6, Gfx::Gfx12),
];

/// Operations of geometry shaders' messages, by value.
const GEOMETRY: &[&str] = &["GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"];

/// The number of a name, or a number written out, from 0 to `most`.
fn named_or_number(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
    most: i64,
    find: &dyn Fn(&str) -> Option<i32>,
) -> Result<(i32, bool), ParseError> {
    let at = scan.at();
    let name = scan.name();
    if let Some(value) = find(name) {
        scan.space();
        return Ok((value, true));
    }
    scan.back_to(at);
    match scan.expression(symbols)? {
        ExprValue { value, float: false, .. } if (0..=most).contains(&value) => Ok((value as i32, false)),
        _ => Err(scan.error(at, ParseRule::Range)),
    }
}

/// A number of 16 bits, signed or not.
fn plain(scan: &mut LineScan<'_>, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    let at = scan.at();
    match scan.expression(symbols)? {
        ExprValue { value, float: false, .. } if (-0x8000..=0xffff).contains(&value) => {
            Ok(value as i32 & 0xffff)
        }
        _ => Err(scan.error(at, ParseRule::Range)),
    }
}

/// Whether a word and an opening parenthesis are next; they are taken then.
fn call(scan: &mut LineScan<'_>, word: &str) -> bool {
    let at = scan.at();
    let name = scan.name();
    scan.space();
    if name == word && scan.eat(b'(') {
        return true;
    }
    scan.back_to(at);
    false
}

/// The hardware register of a name. LLVM 23 calls those of gfx12 that belong to the wave `HW_REG_WAVE_…`, and knows one more.
fn hwreg_of(name: &str, gpu: &Gpu) -> Option<i32> {
    let of_wave = name.strip_prefix("HW_REG_WAVE_").filter(|_| gpu.generation() == Gfx::Gfx12);
    match of_wave {
        None => value_of(HWREGS, name, gpu),
        Some("SCHED_MODE") => Some(26),
        Some(rest) => {
            let is = |have: &str| have.strip_prefix("HW_REG_") == Some(rest);
            HWREGS.iter().find(|(have, ..)| is(have)).and_then(|(have, ..)| value_of(HWREGS, have, gpu))
        }
    }
}

/// `hwreg(NAME, offset, width)`.
pub(super) fn hwreg(scan: &mut LineScan<'_>, gpu: &Gpu, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    if !call(scan, "hwreg") {
        return plain(scan, symbols);
    }
    let (id, _) = named_or_number(scan, symbols, 63, &|name| hwreg_of(name, gpu))?;
    let (mut offset, mut width) = (0, 32);
    if scan.eat(b',') {
        offset = named_or_number(scan, symbols, 31, &|_| None)?.0;
        scan.expect(b',', ParseRule::Comma)?;
        let at = scan.at();
        width = named_or_number(scan, symbols, 32, &|_| None)?.0;
        if width == 0 {
            return Err(scan.error(at, ParseRule::Range));
        }
    }
    scan.expect(b')', ParseRule::Parenthesis)?;
    Ok(id | offset << 6 | (width - 1) << 11)
}

/// Appends a hardware register.
pub(super) fn write_hwreg(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    let (id, offset, width) = (value & 63, value >> 6 & 31, (value >> 11 & 31) + 1);
    out.push_str("hwreg(");
    // Those that LLVM 23 calls registers of the wave.
    let of_wave = matches!(id, 1 | 2 | 4..=6 | 17..=21 | 23 | 24 | 26 | 31 | 32);
    let renamed = gpu.llvm23() && gpu.generation() == Gfx::Gfx12 && of_wave;
    match name_of(HWREGS, id, gpu) {
        Some(name) if renamed => {
            out.push_str("HW_REG_WAVE_");
            out.push_str(name.strip_prefix("HW_REG_").unwrap_or(name));
        }
        Some(name) => out.push_str(name),
        None if renamed => out.push_str("HW_REG_WAVE_SCHED_MODE"),
        None => out.decimal(id.into()),
    }
    if offset != 0 || width != 32 {
        for part in [offset, width] {
            out.push_str(", ");
            out.decimal(part.into());
        }
    }
    out.push(b')');
}

/// What a message says: which, which operation, which stream.
struct MessageText {
    id: i32,
    operation: i32,
    stream: i32,
}

impl MessageText {
    fn new(value: i32, gpu: &Gpu) -> MessageText {
        match gpu.generation() >= Gfx::Gfx11 {
            true => MessageText { id: value & 255, operation: 0, stream: 0 },
            false => MessageText { id: value & 15, operation: value >> 4 & 7, stream: value >> 8 & 3 },
        }
    }

    fn value(&self) -> i32 {
        self.id | self.operation << 4 | self.stream << 8
    }

    fn is_geometry(&self, gpu: &Gpu) -> bool {
        gpu.generation() < Gfx::Gfx11 && matches!(self.id, MSG_GS | MSG_GS_DONE)
    }

    fn is_system(&self, gpu: &Gpu) -> bool {
        gpu.generation() < Gfx::Gfx11 && self.id == MSG_SYSMSG
    }

    /// The name of the operation; `None`: there is no such operation of this message.
    fn operation_name(&self, gpu: &Gpu) -> Option<&'static str> {
        if self.is_system(gpu) {
            return name_of(SYSTEM, self.operation, gpu);
        }
        let nothing = self.id == MSG_GS && self.operation == 0;
        GEOMETRY.get(self.operation as usize).filter(|_| self.is_geometry(gpu) && !nothing).copied()
    }

    /// Whether message, operation and stream go together.
    fn is_valid(&self, gpu: &Gpu) -> bool {
        let streams = self.is_geometry(gpu) && self.operation != 0;
        let operation = match self.is_geometry(gpu) || self.is_system(gpu) {
            true => self.operation_name(gpu).is_some(),
            false => self.operation == 0,
        };
        operation && (streams || self.stream == 0)
    }
}

/// `sendmsg(NAME, OPERATION, stream)`.
pub(super) fn sendmsg(
    scan: &mut LineScan<'_>,
    slot: &OperandSlot,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<i32, ParseError> {
    let start = scan.at();
    if !call(scan, "sendmsg") {
        let value = plain(scan, symbols)?;
        let fits = slot.class == Class::SendMsg || value < 256;
        return if fits { Ok(value) } else { Err(scan.error(start, ParseRule::Range)) };
    }
    let most = if gpu.generation() >= Gfx::Gfx11 { 255 } else { 15 };
    let (id, named) = named_or_number(scan, symbols, most, &|name| value_of(MESSAGES, name, gpu))?;
    let mut message = MessageText { id, operation: 0, stream: 0 };
    let mut has_operation = false;
    if scan.eat(b',') {
        has_operation = true;
        let operations = |name: &str| {
            let geometry = GEOMETRY.iter().position(|n| *n == name).map(|n| n as i32);
            geometry.or_else(|| value_of(SYSTEM, name, gpu))
        };
        message.operation = named_or_number(scan, symbols, 7, &operations)?.0;
        if scan.eat(b',') {
            message.stream = named_or_number(scan, symbols, 3, &|_| None)?.0;
        }
    }
    scan.expect(b')', ParseRule::Parenthesis)?;
    let takes = message.is_geometry(gpu) || message.is_system(gpu);
    // What is named must make sense; what is numbered only fit.
    if named && (!message.is_valid(gpu) || takes != has_operation) {
        return Err(scan.error(start, ParseRule::Message));
    }
    let value = message.value();
    if slot.class == Class::SendMsgRtn && value > 255 {
        return Err(scan.error(start, ParseRule::Range));
    }
    Ok(value)
}

/// Appends a message.
pub(super) fn write_sendmsg(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    let message = MessageText::new(value, gpu);
    // Bits that are no part of a message make it a number.
    let whole = message.value() == value;
    match name_of(MESSAGES, message.id, gpu).filter(|_| whole && message.is_valid(gpu)) {
        Some(name) => {
            out.push_str("sendmsg(");
            out.push_str(name);
            if let Some(operation) = message.operation_name(gpu) {
                out.push_str(", ");
                out.push_str(operation);
                if message.is_geometry(gpu) && message.operation != 0 {
                    out.push_str(", ");
                    out.decimal(message.stream.into());
                }
            }
            out.push(b')');
        }
        None if whole => {
            out.push_str("sendmsg(");
            out.decimal(message.id.into());
            for part in [message.operation, message.stream] {
                out.push_str(", ");
                out.decimal(part.into());
            }
            out.push(b')');
        }
        None => out.decimal(value.into()),
    }
}

/// Fields by name, `name(value)`, between which there are spaces, `&` or commas. What is not said is the greatest.
fn fields(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
    all: &[ImmediateField],
    saturates: bool,
) -> Result<i32, ParseError> {
    let mut word = i32::from(all.iter().fold(0, |word, field| word | field.mask()));
    let mut seen = 0u32;
    loop {
        let at = scan.at();
        let name = scan.name();
        scan.space();
        let (stem, saturate) = match name.strip_suffix("_sat").filter(|_| saturates) {
            Some(stem) => (stem, true),
            None => (name, false),
        };
        let found = all.iter().position(|field| field.name == stem);
        let (n, field) = found
            .and_then(|n| all.get(n).map(|field| (n, field)))
            .ok_or_else(|| scan.error(at, ParseRule::Counter))?;
        // The last of several numbers for a counter counts, as in LLVM.
        if seen >> n & 1 != 0 && !saturates {
            return Err(scan.error(at, ParseRule::Twice));
        }
        seen |= 1 << n;
        scan.expect(b'(', ParseRule::Parenthesis)?;
        let value_at = scan.at();
        let value = scan.expression(symbols)?;
        let value = match value.value {
            _ if value.float => None,
            value if (0..=i64::from(field.most())).contains(&value) => Some(value as u16),
            value if saturate && value > 0 => Some(field.most()),
            _ => None,
        };
        let value = value.ok_or_else(|| scan.error(value_at, ParseRule::Range))?;
        scan.expect(b')', ParseRule::Parenthesis)?;
        word = word & !i32::from(field.mask()) | i32::from(field.put(value));
        let more = scan.eat(b'&') || scan.eat(b',');
        if scan.end() {
            return if more { Err(scan.here(ParseRule::Counter)) } else { Ok(word) };
        }
    }
}

/// Whether a name and an opening parenthesis are next. Nothing is taken.
fn is_call(scan: &mut LineScan<'_>) -> bool {
    let at = scan.at();
    let name = scan.name();
    scan.space();
    let call = !name.is_empty() && scan.peek() == b'(';
    scan.back_to(at);
    call
}

fn counters(gpu: &Gpu) -> &'static [ImmediateField] {
    waits::WAITCNT.get(gpu.generation() as usize).copied().unwrap_or_default()
}

/// `vmcnt(0) & lgkmcnt(0)`.
pub(super) fn waitcnt(scan: &mut LineScan<'_>, gpu: &Gpu, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    if is_call(scan) { fields(scan, symbols, counters(gpu), true) } else { plain(scan, symbols) }
}

/// Appends fields that are not the greatest; all, if all are. Bits that are in none make it a number.
fn write_fields(all: &[ImmediateField], value: i32, out: &mut LineBuf) {
    let (word, known) = (value as u16, all.iter().fold(0, |word, field| word | field.mask()));
    if word & !known != 0 {
        return out.hex(word.into());
    }
    let greatest = |field: &ImmediateField| word & field.mask() == field.mask();
    let every = word == known;
    let mut separator = "";
    for field in all.iter().filter(|field| every || !greatest(field)) {
        out.push_str(separator);
        separator = " ";
        out.push_str(field.name);
        out.push(b'(');
        out.decimal(field.get(word).into());
        out.push(b')');
    }
}

/// Appends what a wait waits for.
pub(super) fn write_waitcnt(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    write_fields(counters(gpu), value, out);
}

fn dependencies(gpu: &Gpu) -> &'static [ImmediateField] {
    waits::DEPCTR.get(gpu.generation() as usize).copied().unwrap_or_default()
}

/// `depctr_sa_sdst(0) & depctr_va_vdst(0)`.
pub(super) fn depctr(scan: &mut LineScan<'_>, gpu: &Gpu, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    if is_call(scan) { fields(scan, symbols, dependencies(gpu), false) } else { plain(scan, symbols) }
}

/// Appends dependencies; bits that are none make it a number.
pub(super) fn write_depctr(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    write_fields(dependencies(gpu), value, out);
}

/// Bits of `s_wait_event`: name, bit, since, until. LLVM 23 assembles that of gfx12 as bit 0, and disassembles bit 1, as
/// Mesa does and the manual says.
const EVENTS: &[NamedValue] =
    &[("dont_wait_export_ready", 0, Gfx::Gfx11, Gfx::Gfx11_5), ("export_ready", 1, Gfx::Gfx12, Gfx::Gfx12)];

/// `{ export_ready: 1 }`.
pub(super) fn wait_event(
    scan: &mut LineScan<'_>,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<i32, ParseError> {
    scan.expect(b'{', ParseRule::Operand)?;
    let (mut events, mut given) = (0, 0);
    while !scan.eat(b'}') {
        let at = scan.at();
        let name = scan.name();
        scan.space();
        let bit = value_of(EVENTS, name, gpu).ok_or_else(|| scan.error(at, ParseRule::Counter))?;
        if given >> bit & 1 != 0 {
            return Err(scan.error(at, ParseRule::Twice));
        }
        given |= 1 << bit;
        scan.expect(b':', ParseRule::ModifierValue)?;
        let at = scan.at();
        let value = scan.expression(symbols)?;
        if value.float || !(0..=1).contains(&value.value) {
            return Err(scan.error(at, ParseRule::Range));
        }
        events |= (value.value as i32) << bit;
        if !scan.eat(b',') && scan.peek() != b'}' {
            return Err(scan.here(ParseRule::Comma));
        }
    }
    Ok(events)
}

/// Appends the events of `s_wait_event`: as LLVM 23 does, or as a number, which other bits are in any case.
pub(super) fn write_wait_event(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    let generation = gpu.generation();
    let event = EVENTS.iter().find(|(.., since, until)| (*since..=*until).contains(&generation));
    match event.filter(|(_, bit, ..)| gpu.llvm23() && value & !(1 << bit) == 0) {
        Some((name, bit, ..)) => {
            out.push_str("{ ");
            out.push_str(name);
            out.push_str(": ");
            out.decimal((value >> bit).into());
            out.push_str(" }");
        }
        None => out.hex(u64::from(value as u16)),
    }
}

/// What `s_delay_alu` waits for, by value.
const DELAYS: &[&str] = &[
    "NO_DEP",
    "VALU_DEP_1",
    "VALU_DEP_2",
    "VALU_DEP_3",
    "VALU_DEP_4",
    "TRANS32_DEP_1",
    "TRANS32_DEP_2",
    "TRANS32_DEP_3",
    "FMA_ACCUM_CYCLE_1",
    "SALU_CYCLE_1",
    "SALU_CYCLE_2",
    "SALU_CYCLE_3",
];

/// How many instructions lie between the two it speaks of, by value.
const SKIPS: &[&str] = &["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];

/// `instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)`.
pub(super) fn delay_alu(scan: &mut LineScan<'_>, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    if !is_call(scan) {
        return plain(scan, symbols);
    }
    let mut value = 0;
    loop {
        let at = scan.at();
        let name = scan.name();
        scan.space();
        let (names, shift) = match name {
            "instid0" => (DELAYS, 0),
            "instskip" => (SKIPS, 4),
            "instid1" => (DELAYS, 7),
            _ => return Err(scan.error(at, ParseRule::Counter)),
        };
        scan.expect(b'(', ParseRule::Parenthesis)?;
        value |= one_of(scan, symbols, names)? << shift;
        scan.expect(b')', ParseRule::Parenthesis)?;
        if !scan.eat(b'|') {
            return Ok(value);
        }
    }
}

/// Appends a delay.
pub(super) fn write_delay_alu(value: i32, out: &mut LineBuf) {
    let mut separator = "";
    let parts = [
        ("instid0", DELAYS, value & 15),
        ("instskip", SKIPS, value >> 4 & 7),
        ("instid1", DELAYS, value >> 7 & 15),
    ];
    if value & 0xf800 != 0 || parts.iter().any(|(_, names, part)| *part as usize >= names.len()) {
        out.hex(u64::from(value as u16));
        return;
    }
    for (name, names, part) in parts.into_iter().filter(|(.., part)| *part != 0) {
        out.push_str(separator);
        separator = " | ";
        out.push_str(name);
        out.push(b'(');
        out.push_str(names.get(part as usize).copied().unwrap_or_default());
        out.push(b')');
    }
    if separator.is_empty() {
        out.push(b'0');
    }
}

/// Operands that are indexed, by bit.
const INDEXED: &[&str] = &["SRC0", "SRC1", "SRC2", "DST"];

/// `gpr_idx(SRC0,DST)`.
pub(super) fn gpr_idx(
    scan: &mut LineScan<'_>,
    slot: &OperandSlot,
    symbols: &dyn Symbols,
) -> Result<i32, ParseError> {
    let at = scan.at();
    if !call(scan, "gpr_idx") {
        let value = plain(scan, symbols)?;
        let fits = value <= 15 || slot.class != Class::GprIdx;
        return if fits { Ok(value) } else { Err(scan.error(at, ParseRule::Range)) };
    }
    let mut value = 0;
    if !scan.eat(b')') {
        loop {
            let at = scan.at();
            let name = scan.name();
            scan.space();
            let bit =
                INDEXED.iter().position(|n| *n == name).ok_or_else(|| scan.error(at, ParseRule::Counter))?;
            if value >> bit & 1 != 0 {
                return Err(scan.error(at, ParseRule::Twice));
            }
            value |= 1 << bit;
            if !scan.eat(b',') {
                break;
            }
        }
        scan.expect(b')', ParseRule::Parenthesis)?;
    }
    Ok(value)
}

/// Appends which operands are indexed.
pub(super) fn write_gpr_idx(value: i32, out: &mut LineBuf) {
    if value & !15 != 0 {
        out.hex(value as u64 & 0xffff);
        return;
    }
    out.push_str("gpr_idx(");
    let mut separator = "";
    for (bit, name) in INDEXED.iter().enumerate() {
        if value >> bit & 1 != 0 {
            out.push_str(separator);
            separator = ",";
            out.push_str(name);
        }
    }
    out.push(b')');
}

/// Versions and bits of `s_version`.
const VERSIONS: &[(&str, i32)] =
    &[("UC_VERSION_GFX7", 0), ("UC_VERSION_GFX10", 4), ("UC_VERSION_GFX11", 6), ("UC_VERSION_GFX12", 9)];
const VERSION_BITS: &[(&str, i32)] =
    &[("UC_VERSION_W64_BIT", 0x2000), ("UC_VERSION_W32_BIT", 0x4000), ("UC_VERSION_MDP_BIT", 0x8000)];

/// Symbols that [`version`] knows besides others.
struct Versions<'a>(&'a dyn Symbols);

impl Symbols for Versions<'_> {
    fn symbol(&self, name: &str) -> Option<SymbolValue> {
        let found = VERSIONS.iter().chain(VERSION_BITS).find(|(n, _)| *n == name);
        found.map(|(_, value)| SymbolValue::Absolute((*value).into())).or_else(|| self.0.symbol(name))
    }

    fn here(&self) -> i64 {
        self.0.here()
    }
}

/// `UC_VERSION_GFX10|UC_VERSION_W32_BIT`.
pub(super) fn version(scan: &mut LineScan<'_>, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    plain(scan, &Versions(symbols))
}

/// Appends a version.
pub(super) fn write_version(value: i32, out: &mut LineBuf) {
    let bits = || VERSION_BITS.iter().filter(|(_, bit)| value & bit != 0);
    if value & 0x1f00 != 0 {
        out.hex(value as u64 & 0xffff);
        return;
    }
    // All but the last bit close a parenthesis.
    (1..bits().count()).for_each(|_| out.push(b'('));
    match VERSIONS.iter().find(|(_, version)| *version == value & 0xff) {
        Some((name, _)) => out.push_str(name),
        None => out.decimal((value & 0xff).into()),
    }
    for (at, (name, _)) in bits().enumerate() {
        if at > 0 {
            out.push(b')');
        }
        out.push(b'|');
        out.push_str(name);
    }
}
