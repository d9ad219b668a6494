//! Faults: what is put into a submit, where it must be found, and which causes fit.

#![allow(dead_code, reason = "each test file uses its own part")]

use super::STEPS;
use super::packets::{ListedPacket, packets};
use super::set::SubmitSet;
use unwedge_base::{Buffer, Generation};
use unwedge_hw::{Db, Gpu};
use unwedge_postmortem::Rule;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pm4::pkt7;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultSeed {
    /// CP_INDIRECT_BUFFER has an address where nothing is mapped.
    BadIbAddress,
    /// A buffer that holds no packet is not mapped.
    UnmappedBuffer,
    /// A packet that the CP reads or writes memory with has a wild address.
    WildAddress,
    /// A call takes fewer dwords than its stream has, and cuts a packet.
    TruncatedPacket,
    /// A wait for a value in memory that nobody writes.
    EndlessWait,
    /// A wait for a register.
    EndlessRegisterWait,
    /// A wait of the BV thread alone for a value in memory that nobody writes.
    EndlessBvWait,
    /// The first instruction of a dispatch jumps to itself.
    EndlessShader,
    /// The descriptors of buffers of a dispatch have their sizes, and null for an address.
    NullDescriptor,
    /// The write that a wait waits for is missing.
    MissingFence,
    /// CP_SET_DRAW_STATE has a group where nothing is mapped.
    BadDrawState,
    /// A header with an opcode that the GPU does not have.
    WrongOpcode,
    /// A dword that is not a packet header.
    Garbage,
    /// A call takes more dwords than its stream has.
    Overrun,
    /// A stream chains back to its start.
    EndlessChain,
    /// A stream calls itself.
    EndlessCalls,
}

/// Descriptors of a set that are looked at, and the dwords of each.
const DESCRIPTORS: u64 = 8;
const DESCRIPTOR_DWORDS: u64 = 16;
/// The type of a descriptor that describes a buffer, in the upper bits of its third dword.
const TYPE_BUFFER: u32 = 4;
/// Events before a wait of which one is taken away.
const EVENTS: usize = 8;

impl FaultSeed {
    pub const ALL: [FaultSeed; 16] = [
        FaultSeed::BadIbAddress,
        FaultSeed::UnmappedBuffer,
        FaultSeed::WildAddress,
        FaultSeed::TruncatedPacket,
        FaultSeed::EndlessWait,
        FaultSeed::EndlessRegisterWait,
        FaultSeed::EndlessBvWait,
        FaultSeed::EndlessShader,
        FaultSeed::NullDescriptor,
        FaultSeed::MissingFence,
        FaultSeed::BadDrawState,
        FaultSeed::WrongOpcode,
        FaultSeed::Garbage,
        FaultSeed::Overrun,
        FaultSeed::EndlessChain,
        FaultSeed::EndlessCalls,
    ];

    /// Whether a cause that the report names fits.
    pub fn fits(self, cause: Rule) -> bool {
        let unmapped = matches!(
            cause,
            Rule::IommuFaultOutside
                | Rule::IommuFaultBetweenBuffers
                | Rule::IommuFaultOverrun
                | Rule::IommuFaultUnderrun
        );
        match self {
            FaultSeed::BadIbAddress
            | FaultSeed::WildAddress
            | FaultSeed::UnmappedBuffer
            | FaultSeed::BadDrawState => unmapped,
            FaultSeed::NullDescriptor => cause == Rule::IommuFaultNullPage,
            FaultSeed::TruncatedPacket => cause == Rule::PacketPastEnd,
            FaultSeed::WrongOpcode => cause == Rule::UnknownOpcode,
            // Kernels leave the contents of a buffer out that is all zero: the value is unknown then.
            FaultSeed::EndlessWait | FaultSeed::EndlessRegisterWait => {
                matches!(cause, Rule::CpWaitsForValue | Rule::CpWaitsForUnknownValue)
            }
            FaultSeed::MissingFence => matches!(
                cause,
                Rule::CpWaitsForValue
                    | Rule::CpWaitsForUnknownValue
                    | Rule::CpWaitsForWrongWrite
                    | Rule::CpWaitsForItself
            ),
            FaultSeed::EndlessBvWait => cause == Rule::BvWaitsForValue,
            FaultSeed::EndlessShader => cause == Rule::ShaderProcessorsStuck,
            FaultSeed::Garbage | FaultSeed::Overrun => {
                matches!(cause, Rule::NotAPacket | Rule::PoisonInStream)
            }
            FaultSeed::EndlessChain | FaultSeed::EndlessCalls => cause == Rule::StreamLoops,
        }
    }
}

/// A fault, put into a submit.
pub struct SeededFault {
    pub set: SubmitSet,
    /// The packet that was made wrong, or that waits for what is missing.
    pub packet: u64,
}

fn halves(iova: u64) -> [u32; 2] {
    [iova as u32, (iova >> 32) as u32]
}

fn opcode(gpu: Gpu<'_>, name: &str) -> Option<u32> {
    (0..=0x7f).find(|&opcode| gpu.packet_name(opcode) == Some(name)).map(u32::from)
}

/// Where a packet of the CP has an address of memory that it reads or writes, in dwords from its header.
fn address_at(gpu: Gpu<'_>, packet: &ListedPacket) -> Option<usize> {
    let name = gpu.packet_name(packet.opcode?)?;
    let at = match name {
        "CP_MEM_WRITE" => 1,
        "CP_REG_TO_MEM" | "CP_MEM_TO_REG" | "CP_MEM_TO_MEM" => 2,
        "CP_EVENT_WRITE" | "CP_EVENT_WRITE7" if packet.words.len() >= 5 => 2,
        "CP_WAIT_REG_MEM" if packet.words.get(1)? >> 4 & 3 == 1 => 2,
        "CP_EXEC_CS_INDIRECT" => 2,
        _ => return None,
    };
    Some(at)
}

/// A wait for a value in memory.
fn is_memory_wait(packet: &ListedPacket) -> bool {
    packet.op == AdrenoOp::WaitRegMem && packet.words.get(1).is_some_and(|word| word >> 4 & 3 == 1)
}

fn calls(packet: &ListedPacket) -> bool {
    packet.op == AdrenoOp::IndirectBuffer && packet.words.len() == 4 && packet.words[3] & 0xf_ffff > 0
}

struct Seeder<'s, 'd> {
    db: &'d Db,
    gpu: Gpu<'d>,
    rng: &'s mut Rng,
    set: SubmitSet,
    packets: Vec<ListedPacket>,
}

impl Seeder<'_, '_> {
    fn pick(&mut self, wanted: impl Fn(&ListedPacket) -> bool) -> Option<ListedPacket> {
        let fitting: Vec<&ListedPacket> = self.packets.iter().filter(|packet| wanted(packet)).collect();
        self.rng.pick(&fitting).map(|packet| (*packet).clone())
    }

    /// Puts packets in the place of those of a stream from a random one on, and fills up with CP_NOP.
    fn replace(&mut self, with: &[u32]) -> Option<u64> {
        // A place where replacing nothing but plain packets makes room.
        let plain = |packet: &ListedPacket| {
            packet.opcode.is_none() || packet.op == AdrenoOp::Nop || packet.op == AdrenoOp::WaitForIdle
        };
        let first = self.pick(|packet| !packet.in_group)?;
        let mut end = first.end();
        let stream_end = first.stream.0 + 4 * first.stream.1;
        let needed = first.iova + 4 * with.len() as u64;
        let mut after = self.packets.iter().filter(|p| p.stream == first.stream && p.iova >= first.end());
        while end < needed {
            let next = after.next().filter(|next| next.iova == end && (plain(next) || calls(next)))?;
            end = next.end();
        }
        if end > stream_end {
            return None;
        }
        self.set.put_all(first.iova, with);
        let left = (end - needed) / 4;
        if left > 0 {
            self.set.put_all(needed, &pkt7(0x10, &vec![0; left as usize - 1]));
        }
        Some(first.iova)
    }

    fn seed(&mut self, fault: FaultSeed) -> Option<u64> {
        let nowhere = self.set.nowhere(self.rng.next_u64());
        let memory = self.set.memory();
        Some(match fault {
            FaultSeed::BadIbAddress => {
                let packet = self.pick(calls)?;
                self.set.put_all(packet.iova + 4, &halves(nowhere));
                packet.iova
            }
            FaultSeed::WildAddress => {
                let gpu = self.gpu;
                let packet = self.pick(|packet| address_at(gpu, packet).is_some())?;
                let at = address_at(gpu, &packet)?;
                self.set.put_all(packet.iova + 4 * at as u64, &halves(nowhere));
                packet.iova
            }
            FaultSeed::UnmappedBuffer => {
                let holds = |buffer: &Buffer, iova: u64| buffer.contains(iova);
                let plain = |buffer: &Buffer| !self.packets.iter().any(|p| holds(buffer, p.iova));
                let plain: Vec<usize> = (0..self.set.buffers.len())
                    .filter(|&at| self.set.buffers.get(at).is_some_and(plain))
                    .collect();
                self.set.buffers.remove(*self.rng.pick(&plain)?);
                // Which packet accesses it first, the machine tells.
                let stopped = self.set.stopped_before(self.db, STEPS)?;
                self.packets.iter().find(|packet| packet.end() == stopped)?.iova
            }
            FaultSeed::TruncatedPacket => {
                let call = self.pick(calls)?;
                let target = call.pair(1)?;
                let inside = |p: &ListedPacket| p.caller == Some(call.iova) && p.words.len() > 1;
                let cut = self.pick(|p| inside(p) && p.stream.0 == target)?;
                let kept = 1 + self.rng.below(cut.words.len() - 1) as u64;
                self.set.put(call.iova + 12, ((cut.iova - target) / 4 + kept) as u32);
                cut.iova
            }
            FaultSeed::EndlessWait => {
                let buffers: Vec<u64> =
                    self.set.buffers.iter().filter(|b| b.contents.is_some()).map(|b| b.iova).collect();
                let at = *self.rng.pick(&buffers)?;
                let value = memory.read(at)?.wrapping_add(1 + self.rng.below(1000) as u32);
                let [low, high] = halves(at);
                self.replace(&pkt7(0x3c, &[3 | 1 << 4, low, high, value, u32::MAX, 16]))?
            }
            FaultSeed::EndlessBvWait => {
                let control = opcode(self.gpu, "CP_THREAD_CONTROL")?;
                let buffers: Vec<u64> =
                    self.set.buffers.iter().filter(|b| b.contents.is_some()).map(|b| b.iova).collect();
                let at = *self.rng.pick(&buffers)?;
                let value = memory.read(at)?.wrapping_add(1 + self.rng.below(1000) as u32);
                let [low, high] = halves(at);
                let wait = pkt7(0x3c, &[3 | 1 << 4, low, high, value, u32::MAX, 16]);
                // BV alone, then both, before a stream of the submit.
                let chosen = self.rng.below(self.set.streams.len());
                let (target, dwords) = *self.set.streams.get(chosen)?;
                let stream = (0..u64::from(dwords)).map(|n| memory.read(target + 4 * n));
                let mut words = [pkt7(control, &[2]), wait, pkt7(control, &[3])].concat();
                words.extend(stream.collect::<Option<Vec<u32>>>()?);
                self.set.streams[chosen] = (nowhere, words.len() as u32);
                let size = (4 * words.len() as u64).next_multiple_of(0x1000);
                let name = "waits".to_owned();
                self.set.buffers.push(Buffer { iova: nowhere, size, contents: Some(words), name });
                nowhere + 8
            }
            FaultSeed::EndlessRegisterWait => {
                let scratch = self.gpu.reg_offset("CP_SCRATCH[0].REG")?;
                let value = 0x1234_0000 | self.rng.below(1000) as u32;
                self.replace(&pkt7(0x3c, &[3, scratch, 0, value, u32::MAX, 16]))?
            }
            FaultSeed::EndlessShader => {
                let dispatch = self.pick(|packet| packet.code.is_some())?;
                let code = dispatch.code?;
                // A jump by 0 instructions.
                self.set.put_all(code, &[0, 0x0100_0000]);
                self.packets.iter().find(|packet| packet.code == Some(code))?.iova
            }
            FaultSeed::NullDescriptor => {
                let dispatch = self.pick(|packet| !packet.descriptors.is_empty())?;
                let base = *self.rng.pick(&dispatch.descriptors)?;
                let slots = (0..DESCRIPTORS).map(|n| base + 4 * DESCRIPTOR_DWORDS * n);
                // Buffers may hold streams and code after the descriptors.
                let taken = |slot: u64| {
                    let end = slot + 4 * DESCRIPTOR_DWORDS;
                    let inside = |iova: u64| (slot..end).contains(&iova);
                    self.packets.iter().any(|p| p.end() > slot && p.iova < end || p.code.is_some_and(inside))
                };
                let is_buffer =
                    |slot: u64| memory.read(slot + 8).is_some_and(|word| word >> 29 == TYPE_BUFFER);
                let buffers: Vec<u64> =
                    slots.take_while(|&slot| !taken(slot)).filter(|&slot| is_buffer(slot)).collect();
                buffers.first()?;
                for slot in buffers {
                    self.set.put_all(slot + 16, &[0, 0]);
                }
                self.packets.iter().find(|packet| packet.descriptors.contains(&base))?.iova
            }
            FaultSeed::MissingFence => {
                let wait = self.pick(is_memory_wait)?;
                let before = self.packets.iter().take_while(|p| p.iova != wait.iova);
                let writes = |p: &&ListedPacket| {
                    matches!(p.op, AdrenoOp::EventWrite | AdrenoOp::EventWrite7 | AdrenoOp::MemWrite)
                };
                let writers: Vec<ListedPacket> = before.filter(writes).cloned().collect();
                // One that writes there, or an event whose address is in a register.
                let to = wait.pair(2)?;
                let there = |p: &&ListedPacket| (1..p.words.len()).any(|at| p.pair(at) == Some(to));
                let writer = match writers.iter().rfind(there) {
                    Some(writer) => writer.clone(),
                    None => self.rng.pick(&writers[writers.len().saturating_sub(EVENTS)..])?.clone(),
                };
                self.set.put_all(writer.iova, &pkt7(0x10, &vec![0; writer.words.len() - 1]));
                wait.iova
            }
            FaultSeed::BadDrawState => {
                let sets = |p: &ListedPacket| p.op == AdrenoOp::SetDrawState && p.words.len() >= 4;
                let packet = self.pick(sets)?;
                let entry = self.rng.below((packet.words.len() - 1) / 3);
                // A group that has dwords and is not switched off.
                let word = *packet.words.get(1 + 3 * entry)?;
                if word & 0xffff == 0 || word >> 17 & 3 != 0 {
                    return None;
                }
                self.set.put_all(packet.iova + 4 * (2 + 3 * entry as u64), &halves(nowhere));
                packet.iova
            }
            FaultSeed::WrongOpcode => {
                let unknown: Vec<u32> =
                    (0..=0x7f).filter(|&op| self.gpu.packet_name(op).is_none()).map(u32::from).collect();
                let packet = self.pick(|packet| packet.opcode.is_some())?;
                let payload = packet.words.get(1..)?;
                let wrong = pkt7(*self.rng.pick(&unknown)?, payload);
                self.set.put(packet.iova, wrong[0]);
                packet.iova
            }
            FaultSeed::Garbage => {
                let packet = self.pick(|_| true)?;
                let word =
                    [0xdead_beef, 0, 0x1234_5678, u32::MAX, packet.words[0] ^ 1 << 15][self.rng.below(5)];
                self.set.put(packet.iova, word);
                packet.iova
            }
            FaultSeed::Overrun => {
                let call = self.pick(calls)?;
                let end = call.pair(1)? + 4 * u64::from(call.words[3] & 0xf_ffff);
                let more = 16 + self.rng.below(64) as u32;
                // What lies after the stream is no packet.
                let after = memory.read(end)?;
                if unwedge_stream::adreno::header::AdrenoPacketHeader::decode(after, self.gpu.generation())
                    .is_some()
                {
                    return None;
                }
                self.set.put(call.iova + 12, (call.words[3] & 0xf_ffff) + more);
                end
            }
            FaultSeed::EndlessChain => {
                let chain = opcode(self.gpu, "CP_INDIRECT_BUFFER_CHAIN")?;
                let first = self.pick(|p| !p.in_group && p.level == 2)?;
                let (start, dwords) = first.stream;
                let [low, high] = halves(start);
                let at = first.iova;
                let with = pkt7(chain, &[low, high, dwords as u32]);
                if at + 16 > start + 4 * dwords || first.words.len() < 4 {
                    return None;
                }
                self.set.put_all(at, &with);
                if first.words.len() > 4 {
                    self.set.put_all(at + 16, &pkt7(0x10, &vec![0; first.words.len() - 5]));
                }
                at
            }
            FaultSeed::EndlessCalls => {
                let first = self.pick(|p| !p.in_group && p.level == 2 && p.words.len() >= 4)?;
                let (start, dwords) = first.stream;
                let [low, high] = halves(start);
                self.set.put_all(first.iova, &pkt7(0x3f, &[low, high, dwords as u32]));
                if first.words.len() > 4 {
                    self.set.put_all(first.iova + 16, &pkt7(0x10, &vec![0; first.words.len() - 5]));
                }
                first.iova
            }
        })
    }
}

/// A submit and its packets.
pub struct ListedSubmit {
    pub set: SubmitSet,
    packets: Vec<ListedPacket>,
}

impl ListedSubmit {
    pub fn new(set: SubmitSet, db: &Db) -> ListedSubmit {
        let packets = packets(&set, db);
        ListedSubmit { set, packets }
    }

    /// Whether it has what a fault needs that most submits lack.
    pub fn has_place(&self, fault: FaultSeed) -> bool {
        let any = |wanted: fn(&ListedPacket) -> bool| self.packets.iter().any(wanted);
        match fault {
            FaultSeed::EndlessShader => any(|packet| packet.code.is_some()),
            FaultSeed::NullDescriptor => any(|packet| !packet.descriptors.is_empty()),
            FaultSeed::MissingFence => any(is_memory_wait),
            FaultSeed::EndlessBvWait => any(|packet| packet.op == AdrenoOp::ThreadControl),
            _ => true,
        }
    }

    /// Puts a fault into it; `None` where it has no place for it.
    pub fn seed(&self, fault: FaultSeed, rng: &mut Rng, db: &Db) -> Option<SeededFault> {
        let generation: Generation = self.set.adreno(db).generation;
        let (set, packets) = (self.set.clone(), self.packets.clone());
        let mut seeder = Seeder { db, gpu: db.gpu(generation), rng, set, packets };
        let packet = seeder.seed(fault)?;
        Some(SeededFault { set: seeder.set, packet })
    }
}
