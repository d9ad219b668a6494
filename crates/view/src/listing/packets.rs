//! What is shown of single operations, beyond the layout of their payload.

use super::{CffText, Shader, disassemble, hex, names};
use std::borrow::Cow;
use unwedge_base::{Dwords, Generation};
use unwedge_hw::RegEnum;
use unwedge_stream::adreno::{AdrenoOp, AdrenoState, Packet};

/// Dwords shown of indirect parameters.
const PARAMETERS: usize = 0x10;
/// Draws shown of an indirect draw whose number is not known.
const DRAWS_SHOWN: u32 = 0x100;
/// The bits of an address where what lies above them is something else.
const ADDRESS: u64 = (1 << 49) - 1;
/// Numbers of draws above this are taken for garbage.
const DRAWS_BELIEVED: u32 = 0x1_0000;

/// First payload dword of a CP_NOP that Turnip uses for a message, the begin of a scope, and its end.
const NOP_MESSAGE: u32 = 0x4d45_5347;
const NOP_BEGIN: u32 = 0x4245_474e;
const NOP_END: u32 = 0x454e_4400;

impl<'d> CffText<'_, '_, 'd> {
    /// The lines of an operation. `level` is one deeper than the stream.
    pub(super) fn operation(&mut self, state: &AdrenoState, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        let quiet = self.options.summary;
        match packet.op {
            AdrenoOp::Nop if !quiet && !self.quiet => self.nop(p),
            AdrenoOp::IndirectBuffer | AdrenoOp::IndirectBufferPfd | AdrenoOp::IndirectBufferChain => {
                self.indirect(packet, level)
            }
            AdrenoOp::WaitForIdle => self.carry.needs_wfi = false,
            AdrenoOp::RegRmw => self.read_modify_write(packet, level),
            AdrenoOp::RegToMem | AdrenoOp::MemToReg => self.register_and_memory(packet, level),
            AdrenoOp::MemWrite => self.memory_write(packet, level),
            AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => {
                let event = self.arg(packet, 0) & 0xff;
                let name = name_of(self.layouts.events, event).unwrap_or("(null)");
                self.text.level(level).str("event ").str(name).end();
            }
            AdrenoOp::DrawIndx | AdrenoOp::DrawIndx2 => self.old_draw(packet, level),
            AdrenoOp::DrawIndxOffset | AdrenoOp::DrawAuto | AdrenoOp::Blit => self.modes(level),
            AdrenoOp::DrawIndirect => {
                self.modes(level);
                // Two dwords also where an address has one (a4xx).
                self.hex_at(self.arg64(packet, 1) & ADDRESS, PARAMETERS, level + 1);
            }
            AdrenoOp::DrawIndxIndirect => {
                self.modes(level);
                let [indices, parameters] = if self.is_64bit() {
                    [1, 4].map(|at| self.arg64(packet, at) & ADDRESS)
                } else {
                    [1, 3].map(|at| u64::from(self.arg(packet, at)))
                };
                self.hex_at(indices, PARAMETERS, level + 1);
                self.hex_at(parameters, PARAMETERS, level + 1);
            }
            AdrenoOp::DrawIndirectMulti => self.indirect_draws(packet, level),
            AdrenoOp::ExecCsIndirect => {
                let parameters = if self.is_64bit() {
                    self.arg64(packet, 1) & ADDRESS
                } else {
                    u64::from(self.arg(packet, 1))
                };
                if !quiet {
                    self.text.level(level).str("addr: ").hex(parameters, 16).end();
                }
                self.hex_at(parameters, PARAMETERS, level + 1);
            }
            AdrenoOp::SetConstant => self.aloud(|this| this.set_constant(state, packet, level)),
            AdrenoOp::ImLoadImmediate => self.aloud(|this| this.load_immediate(p, level)),
            AdrenoOp::SetMarker => {
                self.carry.render_mode = self.marker_name("a6xx_marker", p.get(0).unwrap_or(0) & 0xf)
            }
            AdrenoOp::SetRenderMode => self.render_mode(p, level),
            AdrenoOp::ComputeCheckpoint if !quiet => {
                let dwords = p.get(if p.len() == 8 { 7 } else { 4 }).unwrap_or(0);
                self.nested(address(p, 5), dwords, level);
            }
            AdrenoOp::SetAmble if !quiet && self.options.ambles => {
                self.text.level(level).str("addr=").hex(address(p, 0), 1).end()
            }
            AdrenoOp::ThreadControl => {
                let threads = self.gpu.enumeration("cp_thread");
                self.carry.thread = name_of(threads, p.get(0).unwrap_or(0) & 3);
            }
            AdrenoOp::SkipIb2EnableGlobal => self.carry.skip_ib2_global = p.get(0).unwrap_or(0) != 0,
            AdrenoOp::SkipIb2EnableLocal => self.carry.skip_ib2_local = p.get(0).unwrap_or(0) != 0,
            AdrenoOp::StartBin if self.memory_at(address(p, 1)).is_some() => self.pass(packet, 6),
            AdrenoOp::FixedStrideDrawTable if self.memory_at(address(p, 0)).is_some() => self.pass(packet, 6),
            _ => {}
        }
    }

    /// A payload dword. Where a packet is shorter than what it is, listings read on behind it.
    fn arg(&self, packet: &Packet<'_>, i: usize) -> u32 {
        let behind = || self.memory_at(at(packet, i as u64)?)?.get(0);
        packet.payload.get(i).or_else(behind).unwrap_or(0)
    }

    /// Two payload dwords, the low one first.
    fn arg64(&self, packet: &Packet<'_>, i: usize) -> u64 {
        u64::from(self.arg(packet, i)) | u64::from(self.arg(packet, i + 1)) << 32
    }

    /// The listing comes to where a called buffer returns to, `dwords` behind the packet's header.
    fn pass(&mut self, packet: &Packet<'_>, dwords: u64) {
        let back = packet.place.iova.map(|iova| iova.wrapping_add(4 * dwords));
        let back = back.filter(|&iova| self.memory_at(iova).is_some());
        self.marker.passes(back.unwrap_or(0), self.text, self.options.color());
    }

    fn marker_name(&self, enumeration: &str, value: u32) -> Option<Cow<'d, str>> {
        match name_of(self.gpu.enumeration(enumeration), value) {
            Some(name) => Some(Cow::Borrowed(name)),
            None => Some(Cow::Owned(format!("{value:#x}"))),
        }
    }

    fn nop(&mut self, p: Dwords<'_>) {
        let mut text = p;
        match p.get(0) {
            Some(NOP_MESSAGE) => {
                self.text.str("### ");
            }
            Some(NOP_BEGIN) => {
                self.carry.scopes = self.carry.scopes.saturating_add(1);
                self.text.str(">>> #").int(self.carry.scopes).str(": ");
            }
            Some(NOP_END) => {
                self.text.str("<<< #").int(self.carry.scopes).str(": ");
                self.carry.scopes = self.carry.scopes.saturating_sub(1);
            }
            _ if self.options.markers => {
                self.characters(text);
                self.text.end();
                return;
            }
            _ => return,
        }
        text = text.skip(1);
        if !text.is_empty() {
            self.characters(text);
            self.text.end();
        }
    }

    fn characters(&mut self, dwords: Dwords<'_>) {
        for c in dwords.iter().flat_map(u32::to_le_bytes).take_while(|&c| c != 0).filter(u8::is_ascii) {
            self.text.byte(c);
        }
    }

    fn indirect(&mut self, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        let wide = self.is_64bit();
        let (iova, dwords) =
            if wide { (address(p, 0), p.get(2)) } else { (u64::from(p.get(0).unwrap_or(0)), p.get(1)) };
        if !self.options.summary {
            self.text.level(level).str("ibaddr:").hex(iova, if wide { 16 } else { 8 }).end();
            self.text.level(level).str("ibsize:").hex(u64::from(dwords.unwrap_or(0)), 8).end();
        }
        // The stop is behind the call when it was in a buffer that was executed but never returned.
        if packet.op != AdrenoOp::IndirectBufferChain && self.memory_at(iova).is_some() {
            self.pass(packet, if wide { 4 } else { 3 });
        }
    }

    fn read_modify_write(&mut self, packet: &Packet<'_>, level: usize) {
        let [reg, and, or] = [0, 1, 2].map(|i| self.arg(packet, i));
        let palette = self.options.palette;
        let shown = [(!self.options.summary, None), (self.carry.needs_wfi, Some("NEEDS WFI: "))];
        for (_, front) in shown.into_iter().filter(|(shown, _)| *shown) {
            match front {
                None => self.text.level(level),
                Some(front) => self.text.str(front),
            };
            self.text.str("rmw (");
            names::write_at(self.space(), reg & 0xffff, &palette, self.text);
            self.text.str(" & 0x").hex(u64::from(and), 8).str(") | 0x").hex(u64::from(or), 8).str(")").end();
        }
    }

    /// CP_REG_TO_MEM and CP_MEM_TO_REG. The address is read as two dwords also where it has one (a2xx to a4xx).
    fn register_and_memory(&mut self, packet: &Packet<'_>, level: usize) {
        let first = self.arg(packet, 0);
        if !self.options.summary {
            self.text.level(level).str("base register: ");
            names::write_at(self.space(), first & 0xffff, &self.options.palette, self.text);
            self.text.end();
        }
        let iova = self.arg64(packet, 1);
        self.text.level(level).str("gpuaddr:").hex(iova, 16).end();
        self.hex_at(iova, (first >> 19 & 0x3ff) as usize, level + 1);
    }

    fn memory_write(&mut self, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        if self.is_64bit() {
            self.text.level(level).str("gpuaddr:").hex(address(p, 0), 16).end();
            self.hex(p.skip(2), at(packet, 2), level + 1);
        } else {
            self.text.level(level).str("gpuaddr:").hex(u64::from(p.get(0).unwrap_or(0)), 8).end();
            hex::floats(self.text, p.skip(1), at(packet, 1), level + 1, false);
        }
    }

    /// CP_DRAW_INDX and CP_DRAW_INDX_2 (a2xx, a3xx).
    fn old_draw(&mut self, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        let [initiator, count] = [1, 2].map(|i| self.arg(packet, i));
        let [primitive, source] = [initiator & 0x1f, initiator >> 6 & 3];
        let ib = self.marker.level();
        let number = self.draws.get(ib).copied().unwrap_or(0);
        self.text.level(level).str("draw:          ").dec(u64::from(number)).end();
        let named = [
            ("prim_type:     ", self.layouts.primitives, primitive),
            ("source_select: ", self.layouts.sources, source),
        ];
        for (what, names, value) in named {
            let name = name_of(names, value).unwrap_or("(null)");
            self.text.level(level).str(what).str(name).str(" (").dec(u64::from(value)).str(")").end();
        }
        self.text.level(level).str("num_indices:   ").int(i64::from(count as i32)).end();
        if let Some(draws) = self.draws.get_mut(ib) {
            *draws = draws.wrapping_add(1);
        }
        let size = initiator >> 11 & 1 | initiator >> 12 & 2;
        if packet.op == AdrenoOp::DrawIndx2 {
            let bytes = u64::from(count) * [2, 4, 1, 0][size as usize & 3];
            let place = at(packet, 3);
            let behind = place.and_then(|iova| self.memory_at(iova));
            self.indices(behind.unwrap_or(p.skip(3)), place, size, bytes, level);
        } else {
            if packet.header.count() == 5 {
                let [iova, bytes] = [3, 4].map(|i| u64::from(p.get(i).unwrap_or(0)));
                self.text.level(level).str("gpuaddr:       ").hex(iova, 8).end();
                self.text.level(level).str("idx_size:      ").int(i64::from(bytes as i32)).end();
                let dwords = usize::try_from(bytes / 4 + 1).unwrap_or(usize::MAX);
                if let Some(read) = self.read_at(iova, dwords) {
                    self.indices(read.dwords(), Some(iova), size, bytes, level);
                }
            }
            self.carry.needs_wfi = true;
        }
    }

    fn indices(&mut self, dwords: Dwords<'_>, iova: Option<u64>, size: u32, bytes: u64, level: usize) {
        self.text.level(level).str("idxs:         ");
        let shown = dwords.take(usize::try_from(bytes.div_ceil(4)).unwrap_or(usize::MAX));
        let count = |size: u64| usize::try_from(bytes / size).unwrap_or(usize::MAX);
        match size {
            0 => self.each_index(shown.iter().flat_map(|d| [d & 0xffff, d >> 16]).take(count(2))),
            1 => self.each_index(shown.iter().take(count(4))),
            2 => self.each_index(shown.iter().flat_map(|d| d.to_le_bytes().map(u32::from)).take(count(1))),
            _ => {}
        }
        self.text.end();
        self.hex(dwords.take(count(4)), iova, level + 1);
    }

    /// Lines of indices are as long as their buffer claims to be.
    fn each_index(&mut self, indices: impl Iterator<Item = u32>) {
        for index in indices {
            if self.text.ended().is_some() {
                return;
            }
            self.text.bytes(b" ").dec(u64::from(index));
        }
    }

    fn indirect_draws(&mut self, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        self.modes(level);
        let mut count = p.get(2).unwrap_or(0);
        let Some(layout) = self.gpu.domain("CP_DRAW_INDIRECT_MULTI") else { return };
        let place = |name: &str, this: &Self| {
            layout.index_of(name, &this.carry.variants).map(|i| i as usize).filter(|&i| i != 0)
        };
        if let Some(at) = place("INDIRECT_COUNT", self) {
            let limit = match self.memory_at(address(p, at)).and_then(|m| m.get(0)) {
                Some(stored) => {
                    self.aloud(|this| {
                        this.text.level(level).str("indirect count: ").dec(u64::from(stored)).end();
                    });
                    if stored == 0 || stored > DRAWS_BELIEVED { DRAWS_SHOWN } else { stored }
                }
                None => DRAWS_SHOWN,
            };
            count = count.min(limit);
        }
        if let (Some(at), Some(stride)) = (place("INDIRECT", self), place("STRIDE", self)) {
            let (first, stride) = (address(p, at), u64::from(p.get(stride).unwrap_or(0)));
            for i in 0..count.min(DRAWS_BELIEVED) {
                if self.text.ended().is_some() {
                    return;
                }
                self.aloud(|this| {
                    this.text.level(level).str("draw ").dec(u64::from(i)).str(":").end();
                });
                self.hex_at(first.wrapping_add(stride * u64::from(i)), PARAMETERS, level + 1);
            }
        }
    }

    fn render_mode(&mut self, p: Dwords<'_>, level: usize) {
        let mode = p.get(0).unwrap_or(0);
        self.carry.render_mode = name_of(self.gpu.enumeration("render_mode_cmd"), mode).map(Cow::Borrowed);
        if p.len() < 5 || self.options.summary {
            return;
        }
        self.hex_at(address(p, 1), 64, level + 2);
        if p.len() >= 8 {
            self.nested(address(p, 6), p.get(5).unwrap_or(0), level);
        }
    }

    /// Where the commands of a mode are.
    fn nested(&mut self, iova: u64, dwords: u32, level: usize) {
        self.text.level(level).str("addr: 0x").hex(iova, 16).end();
        self.text.level(level).str("len:  0x").hex(u64::from(dwords), 1).end();
    }

    /// CP_SET_CONSTANT (a2xx).
    fn set_constant(&mut self, state: &AdrenoState, packet: &Packet<'_>, level: usize) {
        let p = packet.payload;
        let first = p.get(0).unwrap_or(0);
        let index = first & 0xffff;
        match first >> 16 & 0xf {
            0 => hex::floats(self.text, p.skip(1), at(packet, 1), level + 1, self.is_64bit()),
            1 if index < 0x78 => self.old_texture(p.skip(1), index, level),
            1 => self.vertex_buffers(p.skip(1), index, level),
            2 => self.text.level(level).str("set bool const ").hex(u64::from(index), 4).end(),
            3 => self.text.level(level).str("set loop const ").hex(u64::from(index), 4).end(),
            4 if first >> 31 != 0 => {
                let [source, value] = [1, 2].map(|i| p.get(i).unwrap_or(0));
                let palette = self.options.palette;
                self.text.level(level);
                names::write_at(self.space(), index + 0x2000, &palette, self.text);
                self.text.str(" = ").hex(u64::from(value), 8).str(" + ");
                names::write_at(self.space(), source, &palette, self.text);
                self.text.str(" (").hex(u64::from(state.regs.raw(source)), 8).str(")").end();
            }
            _ => {}
        }
    }

    /// A texture descriptor of a2xx.
    fn old_texture(&mut self, p: Dwords<'_>, index: u32, level: usize) {
        let d = [0, 1, 2, 3, 4, 5].map(|i| p.get(i).unwrap_or(0));
        let clamp =
            |shift: u32| ["wrap", "mirror", "clamp-last-texel", "(null)"][(d[0] >> shift & 3) as usize];
        let filter = |shift: u32| ["point", "bilinear", "bicubic", "(null)"][(d[3] >> shift & 3) as usize];
        let t = &mut *self.text;
        t.level(level).str("set texture const ").hex(u64::from(index), 4).end();
        t.level(level + 1)
            .str("clamp x/y/z: ")
            .str(clamp(10))
            .str("/")
            .str(clamp(13))
            .str("/")
            .str(clamp(16))
            .end();
        t.level(level + 1).str("filter min/mag: ").str(filter(21)).str("/").str(filter(19)).end();
        t.level(level + 1).str("swizzle: ");
        for i in 0..4 {
            t.byte(b"xyzw01??"[(d[3] >> (1 + 3 * i) & 7) as usize]);
        }
        t.end();
        let [width, height] = [d[2] & 0x1fff, d[2] >> 13 & 0x1fff].map(|n| u64::from(n) + 1);
        let format = name_of(self.gpu.enumeration("a2xx_sq_surfaceformat"), d[1] & 0xf).unwrap_or("(null)");
        t.level(level + 1)
            .str("addr=")
            .hex(u64::from(d[1] & !0xfff), 8)
            .str(" (flags=")
            .hex(u64::from(d[1] & 0xfff), 3);
        t.str("), size=").dec(width).str("x").dec(height).str(", pitch=").dec(u64::from(d[0] >> 22 << 5));
        t.str(", format=").str(format).end();
        t.level(level + 1).str("mipaddr=").hex(u64::from(d[5] & !0xfff), 8);
        t.str(" (flags=").hex(u64::from(d[5] & 0xfff), 3).str(")").end();
    }

    /// Vertex buffer descriptors of a2xx: address and size. One whose memory is absent is passed over dword by dword.
    fn vertex_buffers(&mut self, p: Dwords<'_>, index: u32, level: usize) {
        self.text.level(level).str("set shader const ").hex(u64::from(index), 4).end();
        let mut i = 0;
        while let Some(dword) = p.get(i) {
            i += 1;
            let iova = u64::from(dword & !0xf);
            let Some(memory) = self.memory_at(iova) else { continue };
            let bytes = p.get(i).unwrap_or(0);
            i += 1;
            let format =
                name_of(self.gpu.enumeration("a2xx_sq_surfaceformat"), dword & 0xf).unwrap_or("(null)");
            self.text.level(level + 1).str("addr=").hex(iova, 8).str(", size=").int(i64::from(bytes as i32));
            self.text.str(", format=").str(format).end();
            let dwords = bytes.wrapping_add(3) / 4;
            let shown = memory.take(dwords.min(64) as usize);
            for floats in [false, true] {
                if floats {
                    hex::floats(self.text, shown, Some(iova), level + 1, false);
                } else {
                    self.hex(shown, Some(iova), level + 1);
                }
                if dwords > 64 {
                    self.text.level(level + 1).str("\t\t...").end();
                }
            }
        }
    }

    /// CP_IM_LOAD_IMMEDIATE (a2xx): a shader in the packet.
    fn load_immediate(&mut self, p: Dwords<'_>, level: usize) {
        let (name, kind) = match p.get(0) {
            Some(0) => ("vertex", Shader::Ir2Vertex),
            Some(1) => ("fragment", Shader::Ir2Fragment),
            _ => ("<unknown>", Shader::Ir2Vertex),
        };
        let place = p.get(1).unwrap_or(0);
        self.text.level(level).str(name).str(" shader, start=").hex(u64::from(place >> 16), 4);
        self.text.str(", size=").hex(u64::from(place & 0xffff), 4).end();
        disassemble(self.text, p.skip(2), kind, Generation::A2xx, level + 2);
        match p.get(0) {
            Some(0) => self.hand_on("vo", p.skip(2)),
            Some(1) => self.hand_on("fo", p.skip(2)),
            _ => {}
        }
    }
}

/// The 64-bit address at a payload dword; missing dwords count as zero.
fn address(p: Dwords<'_>, at: usize) -> u64 {
    u64::from(p.get(at).unwrap_or(0)) | u64::from(p.get(at + 1).unwrap_or(0)) << 32
}

/// Where a payload dword lies.
fn at(packet: &Packet<'_>, payload: u64) -> Option<u64> {
    packet.place.iova.map(|iova| iova.wrapping_add(4 * (1 + payload)))
}

fn name_of(names: Option<RegEnum<'_>>, value: u32) -> Option<&str> {
    names?.name_of(u64::from(value))
}
