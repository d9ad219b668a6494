//! Builds command streams from packet names, and writes a walk down as indented lines.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt::Write as _;
use unwedge_base::{Buffer, Dwords, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::*;

/// A command stream being written.
pub struct Cs {
    pub generation: Generation,
    pub dwords: Vec<u32>,
}

pub fn cs(generation: Generation) -> Cs {
    Cs { generation, dwords: Vec::new() }
}

impl Cs {
    fn packet(mut self, header: AdrenoPacketHeader, payload: &[u32]) -> Cs {
        self.dwords.push(header.encode(self.generation).expect("a valid packet"));
        self.dwords.extend(payload);
        self
    }

    /// Registers from `reg` on.
    pub fn regs(self, reg: u32, values: &[u32]) -> Cs {
        self.packet(AdrenoPacketHeader::Registers { reg, count: values.len() as u32 }, values)
    }

    /// An operation by its packet's name, without CP_.
    pub fn op(self, name: &str, payload: &[u32]) -> Cs {
        let db = Db::builtin();
        let gpu = db.gpu(self.generation);
        let opcode =
            (0..128).find(|&o| gpu.packet_name(o).is_some_and(|n| n.strip_prefix("CP_") == Some(name)));
        let opcode = opcode.unwrap_or_else(|| panic!("{} has no CP_{name}", self.generation));
        self.packet(AdrenoPacketHeader::Operation { opcode, count: payload.len() as u32 }, payload)
    }

    /// Dwords as they are.
    pub fn raw(mut self, dwords: &[u32]) -> Cs {
        self.dwords.extend(dwords);
        self
    }

    /// A draw of `count` vertices in the form that the generation has.
    pub fn draw(self, count: u32) -> Cs {
        if self.generation <= Generation::A3xx {
            self.op("DRAW_INDX", &[0, 4, count])
        } else {
            self.op("DRAW_INDX_OFFSET", &[4, 1, count])
        }
    }

    /// CP_INDIRECT_BUFFER.
    pub fn ib(self, iova: u32, dwords: u32) -> Cs {
        let wide = [iova, 0, dwords];
        let narrow = [iova, dwords];
        let payload = if self.generation.is_64bit() { &wide[..] } else { &narrow[..] };
        self.op("INDIRECT_BUFFER", payload)
    }
}

/// Memory that holds these streams at these addresses.
pub fn memory(buffers: &[(u64, &[u32])]) -> Memory {
    let mut memory = Memory::default();
    for &(iova, dwords) in buffers {
        let size = dwords.len() as u64 * 4;
        memory.add(Buffer { iova, size, contents: Some(dwords.to_vec()), name: String::new() });
    }
    memory
}

/// Writes events down, one line each, indented by what they are inside of; checks that they nest.
#[derive(Default)]
pub struct Log {
    pub text: String,
    pub open: Vec<&'static str>,
    /// Kinds of streams to leave out.
    pub skip: Option<AdrenoStreamKind>,
    pub draws: Vec<(u32, bool, DrawKind)>,
    pub troubles: Vec<TroubleKind>,
    pub events: u64,
}

fn exec(exec: Exec) -> String {
    if exec == Exec::Always { String::new() } else { format!(" [{exec:?}]") }
}

impl Log {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.open.len() * 2);
    }

    fn close(&mut self, what: &str) {
        assert_eq!(self.open.pop(), Some(what), "events nest");
    }

    pub fn finish(&self) {
        assert!(self.open.is_empty(), "left open: {:?}", self.open);
    }
}

impl AdrenoSink for Log {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        self.events += 1;
        match event {
            AdrenoEvent::Packet(p) => {
                assert_eq!(p.place.level, state.level);
                let line = match p.op {
                    AdrenoOp::None => "write".to_string(),
                    op => format!("{op:?}"),
                };
                self.line(&format!("{line}{}", exec(p.exec)));
                self.open.push("packet");
            }
            AdrenoEvent::PacketEnd(_) => self.close("packet"),
            AdrenoEvent::RegWrite(w) => {
                if w.exec == Exec::Always && w.reg < 0x8000 && state.thread.is_none() {
                    assert_eq!(state.regs.get(w.reg), Some(w.value), "the write is in the state");
                }
                self.line(&format!("{:x} = {:x}{}", w.reg, w.value, exec(w.exec)));
            }
            AdrenoEvent::Enter(s) => {
                if self.skip == Some(s.kind) {
                    self.line(&format!("skip {:?}", s.kind));
                    return Flow::Skip;
                }
                self.line(&format!("enter {:?} level {}{}", s.kind, s.level, exec(s.exec)));
                self.open.push("stream");
            }
            AdrenoEvent::Leave(_) => self.close("stream"),
            AdrenoEvent::Missing(s) => self.line(&format!("missing {:x?} {} dwords", s.iova, s.claimed)),
            AdrenoEvent::Group(g) => self.line(&format!("group {} loaded {}", g.id, g.loaded)),
            AdrenoEvent::LoadState(l) => {
                let first = l.contents.and_then(|c| c.get(0));
                self.line(&format!(
                    "load {:?} {:?} {:?} {} units to {} at {:x?}: {first:x?}",
                    l.stage, l.ty, l.source, l.units, l.dst, l.iova
                ));
            }
            AdrenoEvent::Draw(d) => {
                self.draws.push((d.number, d.summary, d.kind));
                let rewritten: Vec<_> = state.current_regs().iter_rewritten().collect();
                self.line(&format!(
                    "draw {} {:?} count {:?} after {rewritten:x?}",
                    d.number, d.kind, d.count
                ));
            }
            AdrenoEvent::Trouble(t) => {
                self.troubles.push(t.kind);
                self.line(&format!("trouble at {}: {:x?}", t.place.index, t.kind));
            }
        }
        Flow::Continue
    }
}

/// Walks a stream in one go.
pub fn walk(stream: &Cs, memory: &Memory, options: WalkerOptions) -> (Log, AdrenoState) {
    let db = Db::builtin();
    let mut log = Log::default();
    let mut walker = AdrenoWalker::new(db.gpu(stream.generation), memory, options);
    walker.walk(Dwords::from(&stream.dwords[..]), Some(0x10_0000), &mut log);
    log.finish();
    (log, walker.state)
}

pub fn linear() -> WalkerOptions {
    WalkerOptions { linear: true, ..WalkerOptions::default() }
}

/// What a walk says, line by line; the indentation of `expected` as a whole does not matter.
#[track_caller]
pub fn check(stream: &Cs, memory: &Memory, options: WalkerOptions, expected: &str) -> AdrenoState {
    let (log, state) = walk(stream, memory, options);
    let margin =
        expected.lines().filter(|l| !l.trim().is_empty()).map(|l| l.len() - l.trim_start().len()).min();
    let expected: Vec<_> =
        expected.lines().filter(|l| !l.trim().is_empty()).map(|l| &l[margin.unwrap_or(0)..]).collect();
    let got: Vec<_> = log.text.lines().collect();
    assert_eq!(got, expected, "\n{}", log.text);
    state
}
