//! Where the command processor stopped: in the ring, in every IB, in a draw state.
//!
//! The CP's registers tell where its fetcher (ROQ) is, not where the SQE is. What is fetched but not consumed is counted
//! back from there, over the buffers that were fetched ahead if need be; every place that fits is then compared
//! with the headers the SQE itself remembers. Facts: freedreno's documentation and crash decoder, and CP_SQE_STAT of
//! dumps whose stop is known.

use std::borrow::Cow;
use std::collections::HashMap;

use unwedge_base::{Dwords, Generation};
use unwedge_stream::adreno::Wait;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{AdrenoWalker, DrawKind, Exec, WalkerOptions, read_ahead};

use crate::adreno::case;
use crate::adreno::case::AdrenoCase;
use crate::adreno::executed::Streams;
use crate::adreno::trace::{
    Call, CallList, PacketInStream, StopScene, Stopper, header_of, packet_at, packet_name,
};
use crate::adreno::{inflight, unfinished, wait};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, HangPoint, LevelPosition, Trust};

/// Dwords looked at in front of the ring's read pointer, for the packet that called the IB.
const LOOKBACK: u64 = 20;
/// Largest window of the ring that is looked at; kernels make rings of 8,192 dwords.
const MAX_WINDOW: u64 = 1 << 16;
/// Buffers the fetcher reads ahead at most, as many at each of two levels.
const MAX_AHEAD: usize = read_ahead::READ_AHEAD * read_ahead::READ_AHEAD;
/// Places whose headers are compared with the SQE's.
const MAX_COMPARED: usize = 32;
/// Dwords at the start of a stream: what was executed before a packet in them depends on the caller, so each caller is compared.
const FIRST_DWORDS: u64 = 16;

/// A stream, the dword in it, and for its first dwords ([`FIRST_DWORDS`]) the position of its caller.
type ComparedPlace = (u64, u64, Option<(Option<usize>, u64)>);

/// Where and in what state the CP stopped.
#[derive(Clone, Debug)]
pub struct CpStop {
    /// Index of the ring in the dump.
    pub ring: usize,
    /// The stretch of the ring that was walked: its first dword, and its length in dwords. Draws are numbered over it.
    pub walked: (u64, u64),
    /// The position.
    pub point: HangPoint,
    /// What the walk met there.
    pub scene: StopScene,
    /// What was read to find it.
    pub evidence: Vec<Evidence>,
    /// How the headers that the SQE remembers compare with the stream; `None` if it remembers none, or the stream is
    /// not in the dump.
    pub headers_agree: Option<bool>,
    /// The walk over the stream reached the position.
    pub reached: bool,
    /// The CP has read something of the ring. If not, the position is the first packet of all.
    pub started: bool,
    /// Everything the ring holds is read.
    pub read_to_end: bool,
    /// A register and the address in it, of a stream with work left which the ring does not call: the position may be another.
    pub stray: Option<(String, u64)>,
}

/// What the CP says about the stream of one level.
struct Fetch {
    base: u64,
    /// Dwords of the buffer being fetched, where a register tells.
    dwords: Option<u64>,
    /// Dwords not fetched yet.
    unfetched: u64,
    /// Dwords fetched and not consumed; `None` where no register tells.
    buffered: Option<u64>,
}

impl Fetch {
    fn unread(&self) -> u64 {
        self.unfetched.saturating_add(self.buffered.unwrap_or(0))
    }
}

/// A place where the CP may be.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// The call it is in; `None` for the ring.
    call: Option<usize>,
    /// Dword index of the last dword that left the queue.
    taken: u64,
    /// Dword index of the last dword of the packet in work that was consumed. The first dwords of the next packet can leave
    /// the queue before the SQE is done with this one.
    last_read: u64,
    /// Dwords between the first that may not be executed and `last_read`, where the registers do not say it.
    slack: u64,
    score: i32,
    /// The SQE's headers: `Some(false)` contradicts, `Some(true)` agrees.
    agrees: Option<bool>,
    /// The dwords left are known from a register.
    counted: bool,
}

/// A stretch of the ring.
pub(super) struct RingWindow<'m> {
    /// Ring dword of its first dword.
    start: u64,
    words: Cow<'m, [u32]>,
    len: u64,
    pub(super) iova: Option<u64>,
}

impl RingWindow<'_> {
    pub(super) fn dwords(&self) -> Dwords<'_> {
        Dwords::new(&self.words, self.len as usize)
    }
}

/// Finds where the CP stopped; `None` if the dump has no ring, or does not say how far one was read.
pub fn locate(case: &AdrenoCase<'_>) -> Option<CpStop> {
    let ring_index = hung_ring(case)?;
    let ring = case.dump.rings.get(ring_index)?;
    let ring_dwords = u64::from(ring.size? / 4).max(1);
    let read = ring_position(case, ring_index, ring_dwords)?;
    let written =
        ring.wptr.or_else(|| case.regs.get("CP_RB_WPTR")).map_or(read, |w| u64::from(w) % ring_dwords);
    let anchor = ring.rptr.map_or(read, |r| u64::from(r) % ring_dwords);

    let pool = inflight::pool(case).map(|(pool, _)| pool);
    let mut stop = None;
    for lookback in [LOOKBACK, ring_dwords.saturating_sub(1)] {
        let from = back(anchor, lookback, ring_dwords);
        let window = window(case, ring_index, from, (read, written), ring_dwords);
        let (mut found, is_short) = locate_in(case, ring_index, &window, read, ring_dwords);
        found.read_to_end &= read == written;
        // The second stretch is the whole ring.
        let is_short = is_short && lookback == LOOKBACK;
        // A stream with work left that this stretch does not call may be called before it.
        // So may work that the clusters have not finished.
        let whole = unfinished::is_walked(case, &found, pool.as_ref());
        let enough = found.reached && found.stray.is_none() && !is_short && whole;
        // The queues reach back into streams that are called before the stretch.
        let better = found.reached && found.stray.is_none() && !is_short;
        if better || stop.is_none() {
            stop = Some(found);
        }
        if enough {
            break;
        }
    }
    stop
}

/// The ring the CP reads: the one at CP_RB_BASE, else one with work left.
fn hung_ring(case: &AdrenoCase<'_>) -> Option<usize> {
    let rings = &case.dump.rings;
    let base = case.regs.address("CP_RB_BASE");
    let pending = |r: &unwedge_capture::msm::Ring<'_>| {
        r.last_fence.zip(r.retired_fence).is_some_and(|(last, retired)| last != retired)
    };
    rings
        .iter()
        .position(|r| Some(r.iova) == base && r.size != Some(0))
        .or_else(|| rings.iter().position(pending))
        .or_else(|| rings.iter().position(|r| r.rptr != r.wptr))
        .or_else(|| (!rings.is_empty()).then_some(0))
}

/// The ring dword the CP consumes next.
fn ring_position(case: &AdrenoCase<'_>, ring: usize, ring_dwords: u64) -> Option<u64> {
    let shadow = case.dump.rings.get(ring).and_then(|r| r.rptr);
    let rptr = u64::from(case.regs.get("CP_RB_RPTR").or(shadow)?) % ring_dwords;
    Some(match case.gpu.generation() {
        // The register is where the fetcher reads. On a7xx it is where the SQE reads.
        Generation::A6xx => back(rptr, buffered(case, "RB").unwrap_or(0), ring_dwords),
        _ => rptr,
    })
}

fn back(from: u64, by: u64, size: u64) -> u64 {
    (from + size - by % size) % size
}

/// Dwords in the fetch queue of a level.
fn buffered(case: &AdrenoCase<'_>, level: &str) -> Option<u64> {
    let rem = case.regs.field(&format!("CP_ROQ_AVAIL_{level}"), "REM")?;
    Some(u64::from(read_ahead::fetched(u32::try_from(rem).ok()?)))
}

fn fetch(case: &AdrenoCase<'_>, level: &str) -> Option<Fetch> {
    const SIZE_BITS: u32 = 0xf_ffff;
    let base = case.regs.address(&format!("CP_{level}_BASE")).filter(|&base| base != 0)?;
    let unfetched = case
        .regs
        .get(&format!("CP_{level}_REM_SIZE"))
        .or_else(|| case.regs.get(&format!("CP_{level}_BUFSZ")))?;
    let dwords = case.regs.get(&format!("CP_{level}_DWORDS")).filter(|&d| d != 0);
    Some(Fetch {
        base,
        dwords: dwords.map(u64::from),
        unfetched: u64::from(unfetched & SIZE_BITS),
        buffered: buffered(case, level),
    })
}

/// The ring from the first packet at or after `from` up to `written`. What lies in front of the CP's position may be
/// the rest of an older packet: the first dword from which headers lead on to `read` is taken.
fn window<'m>(
    case: &'m AdrenoCase<'_>,
    ring: usize,
    from: u64,
    (read, written): (u64, u64),
    ring_dwords: u64,
) -> RingWindow<'m> {
    let iova = case.dump.rings.get(ring).map_or(0, |r| r.iova);
    let Some(contents) = case.memory.dwords(iova) else {
        return RingWindow { start: from, words: Cow::Borrowed(&[]), len: 0, iova: None };
    };
    let span = back(written, from, ring_dwords).min(MAX_WINDOW);
    let goal = back(read, from, ring_dwords);
    // Where the dump ends inside of the ring, dwords are unknown from some place on. The walk takes those that are known
    // and lead to where the CP reads; if that is unknown too, those from the start on.
    let is_known = |i: u64| contents.get(((from + i) % ring_dwords) as usize).is_some();
    let lead = (0..goal.min(span)).rev().take_while(|&i| is_known(i)).count() as u64;
    let skipped = if lead > 0 { goal.min(span) - lead } else { 0 };
    let span = (skipped..span).take_while(|&i| is_known(i)).count() as u64;
    let (from, goal) = ((from + skipped) % ring_dwords, goal.saturating_sub(skipped));
    let at = |i: u64| contents.get(((from + i) % ring_dwords) as usize);
    // How far the headers lead from each dword on.
    let mut reach = vec![0u64; span as usize];
    for i in (0..span).rev() {
        let header = at(i).filter(|&raw| raw != 0).and_then(|raw| header_of(raw, case.gpu.generation()));
        let next = header.map_or(i, |h| i.saturating_add(1).saturating_add(u64::from(h.count())));
        let furthest = reach.get(next as usize).copied().filter(|_| next > i).unwrap_or(next);
        if let Some(entry) = reach.get_mut(i as usize) {
            *entry = furthest;
        }
    }
    let leads = reach.iter().position(|&end| end >= goal && end > 0);
    let best = || reach.iter().copied().max().and_then(|max| reach.iter().position(|&end| end == max));
    let skip = leads.or_else(best).unwrap_or(0) as u64;
    let (start, len) = ((from + skip) % ring_dwords, span - skip);
    stretch(contents, iova, (start, len), ring_dwords)
}

/// A stretch of the ring, all of it known.
fn stretch(contents: Dwords<'_>, iova: u64, (start, len): (u64, u64), ring_dwords: u64) -> RingWindow<'_> {
    if start + len <= ring_dwords {
        let part = contents.skip(start as usize).take(len as usize);
        let iova = iova.checked_add(start * 4);
        return RingWindow { start, words: Cow::Borrowed(part.stored()), len: part.len() as u64, iova };
    }
    let words: Vec<u32> =
        (0..len).map_while(|i| contents.get(((start + i) % ring_dwords) as usize)).collect();
    RingWindow { start, len: words.len() as u64, words: Cow::Owned(words), iova: None }
}

/// The ring from one dword up to another, as far as it is known and not longer than what is walked.
pub(super) fn part_of_ring<'m>(
    case: &'m AdrenoCase<'_>,
    ring: usize,
    from: u64,
    to: u64,
) -> Option<RingWindow<'m>> {
    let ring = case.dump.rings.get(ring)?;
    let ring_dwords = u64::from(ring.size? / 4).max(1);
    let len = back(to, from, ring_dwords).min(MAX_WINDOW);
    (from < ring_dwords).then_some(())?;
    Some(stretch(case.memory.dwords(ring.iova)?, ring.iova, (from, len), ring_dwords))
}

/// The stretch of the ring that was walked to find a stop.
pub(super) fn walked<'m>(case: &'m AdrenoCase<'_>, stop: &CpStop) -> Option<RingWindow<'m>> {
    let ring = case.dump.rings.get(stop.ring)?;
    let ring_dwords = u64::from(ring.size? / 4).max(1);
    Some(stretch(case.memory.dwords(ring.iova)?, ring.iova, stop.walked, ring_dwords))
}

/// The stop that a stretch of the ring leads to, and whether the stretch is too short: it calls a stream that is being fetched, but not
/// every stream that is queued before that one.
fn locate_in(
    case: &AdrenoCase<'_>,
    ring: usize,
    window: &RingWindow<'_>,
    read: u64,
    ring_dwords: u64,
) -> (CpStop, bool) {
    // There may be four such walks.
    let options = WalkerOptions { linear: false, budget: unwedge_stream::adreno::budget(&case.memory) / 4 };
    let mut list = CallList::default();
    AdrenoWalker::new(case.gpu, &case.memory, options.clone()).walk(window.dwords(), window.iova, &mut list);
    let calls = list.calls;

    let streams = Streams::new(case, window.dwords(), &calls);
    let fetches = [fetch(case, "IB1"), fetch(case, "IB2")];
    let ring_read = back(read, window.start, ring_dwords);
    let mut candidates = Vec::new();
    let mut outer: Option<Candidate> = None;
    let mut is_short = false;
    for (level, fetch) in (1u8..).zip(&fetches) {
        let Some(fetch) = fetch else { continue };
        let found = level_candidates(case, &streams, &calls, level, fetch, outer.as_ref());
        let is_called = || calls.iter().any(|call| call.level == level && call.iova == fetch.base);
        is_short |= found.is_empty() && is_called();
        outer = found.iter().copied().max_by_key(|c| c.score).or(outer);
        candidates.extend(found);
    }
    if ring_read > 0 {
        let mut c = Candidate {
            call: None,
            taken: ring_read - 1,
            last_read: ring_read - 1,
            slack: 0,
            score: 0,
            agrees: None,
            counted: case.regs.get("CP_RB_RPTR").is_some(),
        };
        compare_headers(case, &streams, true, &mut c);
        candidates.push(c);
    }
    // A ring that was never read is zero at its end, where a read pointer of zero would come from otherwise.
    let last_dword = case.dump.rings.get(ring).and_then(|r| {
        let end = r.iova.checked_add(ring_dwords.checked_sub(1)?.checked_mul(4)?)?;
        case.memory.read(end)
    });
    let started = !candidates.is_empty() || read != 0 || last_dword != Some(0);
    let stray = stray(case, &calls, &fetches);
    let read_to_end = fetches.iter().flatten().all(|f| f.unread() == 0);
    let mut best = candidates.iter().copied().max_by_key(|c| c.score).unwrap_or(Candidate {
        call: None,
        taken: 0,
        last_read: 0,
        slack: 0,
        score: 0,
        agrees: None,
        counted: false,
    });
    narrow_to_wait(case, &streams, &mut best);

    let keys = key_registers(case);
    let mut stopper = Stopper::new(case.gpu, best.call, best.last_read, &keys);
    AdrenoWalker::new(case.gpu, &case.memory, options).walk(window.dwords(), window.iova, &mut stopper);
    let mut stop =
        describe(case, ring, window, ring_dwords, &calls, &fetches, best, ring_read, stopper.scene);
    if stray.is_some() {
        stop.point.trust = stop.point.trust.min(Trust::Possible);
    }
    (CpStop { started, stray, read_to_end, ..stop }, is_short)
}

/// The level whose registers name a stream that no call leads to, though there is work left in it.
fn stray(case: &AdrenoCase<'_>, calls: &[Call], fetches: &[Option<Fetch>]) -> Option<(String, u64)> {
    let (level, fetch) = (1u8..).zip(fetches).find_map(|(level, fetch)| {
        let fetch = fetch.as_ref().filter(|f| f.unread() > 0)?;
        let called = calls.iter().any(|c| c.level == level && c.iova == fetch.base);
        (!called).then_some((level, fetch))
    })?;
    // The calls of a stream that is not in the dump are not known.
    let unseen = calls.iter().any(|c| c.level < level && case.memory.dwords(c.iova).is_none());
    (!unseen).then(|| (format!("CP_IB{level}_BASE"), fetch.base))
}

/// Every place in the streams of one level that the fetch registers allow.
fn level_candidates(
    case: &AdrenoCase<'_>,
    streams: &Streams<'_, '_>,
    calls: &[Call],
    level: u8,
    fetch: &Fetch,
    outer: Option<&Candidate>,
) -> Vec<Candidate> {
    let made: Vec<usize> =
        (0..calls.len()).filter(|&i| calls[i].level == level && calls[i].exec != Exec::NotTaken).collect();
    let mut out = Vec::new();
    // Calls of one buffer over and over (once for each bin) lead to the same dword: read its headers once.
    // What was executed before the buffer's first packets depends on its caller. That chooses between calls only where there are
    // few enough of them to compare.
    let tells_callers = made.iter().filter(|&&call| calls[call].iova == fetch.base).count() <= MAX_COMPARED;
    let mut compared: HashMap<ComparedPlace, (Option<bool>, i32, u64)> = HashMap::new();
    for (order, &fetched) in made.iter().enumerate() {
        let Some(call) = calls.get(fetched).filter(|c| c.iova == fetch.base) else { continue };
        let same_size = fetch.dwords.is_none_or(|d| d == call.size);
        // Nothing may be consumed of this buffer: the CP is in one before it then, at the last dword if none is left.
        let before = made.iter().take(order + 1).rev().take(MAX_AHEAD + 1);
        let sizes = before.map(|&i| calls.get(i).map_or(0, |call| call.size));
        let Some((back, left)) = read_ahead::count_back(sizes, fetch.unread()) else { continue };
        let hit = made[order - back];
        let call = &calls[hit];
        let taken = call.size.saturating_sub(left).saturating_sub(1);
        let mut c = Candidate {
            call: Some(hit),
            taken,
            last_read: taken,
            slack: if fetch.buffered.is_some() { 0 } else { roq_depth(case.gpu.generation()) },
            score: i32::from(level) + i32::from(same_size) + if left > 0 { 4 } else { 0 },
            agrees: None,
            counted: fetch.buffered.is_some(),
        };
        if let Some(outer) = outer {
            c.score += match left == 0 && has_gone_on(case, calls, call, outer) {
                true => -6,
                false => fits_outer(call, outer),
            };
        }
        let caller = (tells_callers && c.last_read < FIRST_DWORDS).then_some((call.parent, call.at));
        let key = (call.iova, c.last_read, caller);
        if let Some(&(agrees, score, last_read)) = compared.get(&key) {
            (c.agrees, c.last_read) = (agrees, last_read);
            c.score += score;
        } else if compared.len() < MAX_COMPARED {
            let before = c.score;
            compare_headers(case, streams, tells_callers, &mut c);
            compared.insert(key, (c.agrees, c.score - before, c.last_read));
        }
        out.push(c);
    }
    out
}

/// The caller of a stream in work cannot be ahead of what the CP has fetched of the level above.
fn fits_outer(call: &Call, outer: &Candidate) -> i32 {
    match (call.parent, outer.call) {
        (parent, outer_call) if parent == outer_call && call.at <= outer.taken => 3,
        (Some(parent), Some(outer_call)) if parent < outer_call => 1,
        _ => -6,
    }
}

/// The level above has taken more than the packet after a call: the SQE is back from it, if it has taken all of its dwords.
fn has_gone_on(case: &AdrenoCase<'_>, calls: &[Call], call: &Call, outer: &Candidate) -> bool {
    let caller = outer.call.filter(|&outer| call.parent == Some(outer)).and_then(|outer| calls.get(outer));
    let Some(stream) = caller.and_then(|caller| case.memory.dwords(caller.iova)) else { return false };
    let end_of = |start: u64| {
        let header = header_of(stream.get(start as usize)?, case.gpu.generation())?;
        start.checked_add(1)?.checked_add(u64::from(header.count()))
    };
    let next_ends = end_of(call.at).and_then(end_of);
    outer.counted && next_ends.is_some_and(|end| outer.taken >= end)
}

/// Dwords that may lie fetched where no register counts them.
fn roq_depth(generation: Generation) -> u64 {
    if generation.is_64bit() { 256 } else { 128 }
}

fn compare_headers(case: &AdrenoCase<'_>, streams: &Streams<'_, '_>, tells_callers: bool, c: &mut Candidate) {
    // In a draw state, the SQE's headers are those of the draw state.
    let Some(sqe) = case.sqe.as_ref().filter(|_| draw_state_position(case).is_none()) else { return };
    let packet = streams.of(c.call).and_then(|stream| packet_at(stream, c.last_read, case.gpu.generation()));
    let Some(PacketInStream { at: index, header: raw, mut before }) = packet else { return };
    if raw == sqe.header() {
        c.score += 10;
    } else if index > 0 && before.first().is_some_and(|&(_, header)| header == sqe.header()) {
        c.last_read = index - 1;
        before.remove(0);
        c.score += 8;
    } else {
        c.agrees = Some(false);
        c.score -= 5;
        return;
    }
    c.agrees = Some(true);
    let executed = streams.executed_before(c.call, before, tells_callers);
    // The SQE remembers operations; register writes in between do not count.
    let mut operations = executed.iter().filter(|&&h| {
        !matches!(
            header_of(h, case.gpu.generation()),
            Some(AdrenoPacketHeader::Registers { .. } | AdrenoPacketHeader::Padding)
        )
    });
    c.score += 3 * sqe.previous.iter().take_while(|&h| operations.next() == Some(h)).count() as i32;
}

/// Without a count of what is fetched ahead, the CP may be anywhere in the last stretch: a packet there that waits for
/// a value which is not there is where it stands.
fn narrow_to_wait(case: &AdrenoCase<'_>, streams: &Streams<'_, '_>, best: &mut Candidate) {
    if best.slack == 0 {
        return;
    }
    let Some(stream) = streams.of(best.call) else { return };
    let first = best.last_read.saturating_sub(best.slack);
    let mut index = first;
    let Some(packet) = packet_at(stream, index, case.gpu.generation()) else { return };
    index = packet.at;
    while index <= best.last_read {
        let Some(raw) = stream.get(index as usize) else { return };
        let header = header_of(raw, case.gpu.generation());
        let count = header.map_or(0, |h| h.count());
        if let Some(header) = header {
            let op = match packet_name(case.gpu, header).as_str() {
                "CP_WAIT_REG_MEM" => unwedge_stream::adreno::AdrenoOp::WaitRegMem,
                "CP_WAIT_MEM_GTE" => unwedge_stream::adreno::AdrenoOp::WaitMemGte,
                _ => unwedge_stream::adreno::AdrenoOp::Other,
            };
            let payload: Vec<u32> =
                stream.skip(index as usize + 1).take(count.min(16) as usize).iter().collect();
            let unmet = Wait::parse(op, &payload, case.gpu.generation())
                .is_some_and(|w| wait::now(&w, case).is_some_and(|now| !w.accepts(now)));
            if unmet {
                best.last_read = index + u64::from(count);
                best.slack = 0;
                return;
            }
        }
        index = index.saturating_add(1).saturating_add(u64::from(count));
    }
}

/// Names of the registers that describe work of a kind for people. A generation may not have all of them.
pub fn describing_registers(kind: DrawKind) -> impl Iterator<Item = &'static str> {
    KEY_REGISTERS.iter().filter(move |(of, _)| *of == kind).flat_map(|(_, names)| names.iter().copied())
}

/// Registers that describe work for people, where a generation has them.
const KEY_REGISTERS: &[(DrawKind, &[&str])] = &[
    (
        DrawKind::Draw,
        &[
            "RB_MRT[0].BUF_INFO",
            "RB_MRT[0].BASE",
            "RB_DEPTH_BUFFER_INFO",
            "RB_DEPTH_BUFFER_BASE",
            "SP_VS_OBJ_START",
            "SP_FS_OBJ_START",
        ],
    ),
    (DrawKind::Dispatch, &["SP_CS_OBJ_START"]),
    (DrawKind::Blit, &["RB_2D_DST_INFO", "RB_2D_DST", "SP_PS_2D_SRC_INFO", "SP_PS_2D_SRC"]),
    (DrawKind::Event, &["RB_BLIT_DST_INFO", "RB_BLIT_DST"]),
];

fn key_registers(case: &AdrenoCase<'_>) -> Vec<(DrawKind, u32)> {
    let with_kind = |(kind, names): &(DrawKind, &[&str])| {
        let kind = *kind;
        names
            .iter()
            .filter_map(|name| case.gpu.reg_offset(name))
            .map(move |reg| (kind, reg))
            .collect::<Vec<_>>()
    };
    KEY_REGISTERS.iter().flat_map(with_kind).collect()
}

#[allow(clippy::too_many_arguments, reason = "the pieces of one search, put together once")]
fn describe(
    case: &AdrenoCase<'_>,
    ring: usize,
    window: &RingWindow<'_>,
    ring_dwords: u64,
    calls: &[Call],
    fetches: &[Option<Fetch>; 2],
    best: Candidate,
    ring_read: u64,
    mut scene: StopScene,
) -> CpStop {
    if !scene.reached {
        // What the walk met then is all of the stream, not what lies before the stop.
        scene = StopScene::default();
    }
    let mut levels = Vec::new();
    let (mut call, mut start, mut end) = (best.call, best.last_read, best.last_read);
    if let Some(packet) = &scene.packet {
        start = packet.index.min(best.last_read);
    }
    start = start.saturating_sub(best.slack);
    while let Some(c) = call.and_then(|i| calls.get(i)) {
        levels.push(LevelPosition { level: c.level, base: c.iova, size: Some(c.size), range: (start, end) });
        (start, end) = (c.at, c.at.saturating_add(3));
        if let Some(fetch) =
            c.level.checked_sub(2).and_then(|l| fetches.get(usize::from(l))).and_then(Option::as_ref)
        {
            // The level above is fetched ahead of the call in work, maybe into another buffer.
            if let Some(parent) = c.parent.and_then(|i| calls.get(i)) {
                let left = if parent.iova == fetch.base { fetch.unread() } else { 0 };
                end = end.max(parent.size.saturating_sub(left).saturating_sub(1));
            }
        }
        call = c.parent;
    }
    let ring_base = case.dump.rings.get(ring).map_or(0, |r| r.iova);
    if best.call.is_some() {
        end = end.max(ring_read.saturating_sub(1));
    }
    levels.push(LevelPosition {
        level: 0,
        base: ring_base,
        size: Some(ring_dwords),
        range: ((window.start + start) % ring_dwords, (window.start + end) % ring_dwords),
    });
    levels.reverse();
    // All of a draw state may be taken while the SQE is in its last packet.
    let at_end = || draw_state_at_end(case).filter(|_| best.agrees == Some(false));
    let (in_group, sds) = match draw_state_position(case) {
        Some(at) => (case.sqe.is_some().then_some(Trust::Certain), Some(at)),
        None => at_end().map(|at| (Some(Trust::Likely), Some(at))).unwrap_or_default(),
    };
    let (trust, headers_agree) = match in_group {
        Some(trust) => (trust, Some(true)),
        None => (trust_of(case, &best, &scene), best.agrees),
    };
    let (packet, iova) = match (&sds, &scene.packet, &scene.garbage) {
        (Some(at), ..) => (at.name.clone(), Some(at.iova)),
        (None, Some(step), _) => (Some(step.name.clone()), step.iova),
        (None, None, Some((_, iova))) => (None, *iova),
        (None, None, None) => {
            let header = case.sqe.as_ref().and_then(|s| header_of(s.header(), case.gpu.generation()));
            (header.map(|h| packet_name(case.gpu, h)), None)
        }
    };
    let header = match (&sds, &scene.packet, &scene.garbage) {
        (Some(at), ..) => Some(at.raw).filter(|_| at.name.is_none()),
        (None, None, Some((raw, _))) => Some(*raw),
        _ => None,
    };
    levels.extend(sds.map(|at| at.level));
    let draw = scene.own_work.as_ref().or_else(|| scene.work.back()).map(|w| w.number);
    let reached = scene.reached;
    let mut evidence = seen(case, ring);
    let after_sqe = usize::from(case.sqe.is_some());
    evidence.splice(after_sqe..after_sqe, levels.iter().map(level_evidence));
    let point = HangPoint {
        ring: case.dump.rings.get(ring).map(|r| r.id),
        ring_name: None,
        levels,
        packet,
        header,
        iova,
        draw,
        trust,
    };
    let walked = (window.start, window.len);
    let (started, read_to_end, stray) = (true, false, None);
    CpStop { ring, walked, point, evidence, headers_agree, scene, reached, started, read_to_end, stray }
}

/// The dwords of a level that the CP may have stopped in.
fn level_evidence(level: &LevelPosition) -> Evidence {
    let (first, last) = level.range;
    let fact = Fact::Dwords {
        level: Some(level.level),
        first: Some(first),
        count: last.saturating_sub(first).saturating_add(1),
        words: Vec::new(),
        packet: None,
    };
    Evidence { iova: Some(level.base), ..case::seen("position", fact) }
}

/// A position in a draw state.
struct DrawStatePosition {
    level: LevelPosition,
    /// The dword where the packet starts.
    raw: u32,
    /// Its name; `None` where the dword is not a packet header.
    name: Option<String>,
    iova: u64,
}

/// The position in a draw state, if the SQE is in one: there are dwords of it left, and its header is the SQE's.
fn draw_state_position(case: &AdrenoCase<'_>) -> Option<DrawStatePosition> {
    let fetch = fetch(case, "SDS").filter(|fetch| fetch.unread() > 0)?;
    last_taken_of(case, &fetch)
}

/// The last packet of a draw state that is taken whole, if its header is the SQE's. The SQE is in it, or after it.
fn draw_state_at_end(case: &AdrenoCase<'_>) -> Option<DrawStatePosition> {
    let fetch = fetch(case, "SDS").filter(|fetch| fetch.unread() == 0)?;
    case.sqe.as_ref()?;
    last_taken_of(case, &fetch)
}

fn last_taken_of(case: &AdrenoCase<'_>, fetch: &Fetch) -> Option<DrawStatePosition> {
    let size = fetch.dwords?;
    let header = case.sqe.as_ref().map(|s| s.header());
    let last = size.checked_sub(fetch.unread())?.checked_sub(1)?;
    let stream = case.memory.dwords(fetch.base)?.take(size as usize);
    let PacketInStream { at: index, header: raw, .. } = packet_at(stream, last, case.gpu.generation())?;
    if header.is_some_and(|h| h != raw) {
        return None;
    }
    let name = header_of(raw, case.gpu.generation()).map(|h| packet_name(case.gpu, h));
    // Without the SQE's word for it, garbage says nothing.
    if name.is_none() && header.is_none() {
        return None;
    }
    let iova = fetch.base.checked_add(index.checked_mul(4)?)?;
    let level = LevelPosition { level: 3, base: fetch.base, size: Some(size), range: (index, last) };
    Some(DrawStatePosition { level, raw, name, iova })
}

fn trust_of(case: &AdrenoCase<'_>, best: &Candidate, scene: &StopScene) -> Trust {
    let in_ib = best.call.is_some();
    if !scene.reached {
        return if in_ib && best.counted { Trust::Possible } else { Trust::Guess };
    }
    match (best.agrees, best.counted, best.slack) {
        (Some(true), true, _) => Trust::Certain,
        (Some(true), false, _) => Trust::Likely,
        (Some(false), ..) => Trust::Possible,
        (None, true, _) if in_ib || case.gpu.generation() >= Generation::A6xx => Trust::Likely,
        (None, _, 0) if in_ib => Trust::Likely,
        (None, ..) => Trust::Possible,
    }
}

fn seen(case: &AdrenoCase<'_>, ring: usize) -> Vec<Evidence> {
    const SQE: &str = "indexed-registers CP_SQE_STAT";
    let mut out = Vec::new();
    if let Some(sqe) = &case.sqe {
        let packet = header_of(sqe.header(), case.gpu.generation()).map(|h| packet_name(case.gpu, h));
        let args = Args::new()
            .with("pc", Arg::Value(u64::from(sqe.pc)))
            .with("header", Arg::Value(u64::from(sqe.header())))
            .with_some("packet", packet.map(Arg::name));
        out.push(case::seen(SQE, Fact::Record(args)));
    }
    for level in ["IB2", "IB1"] {
        if fetch(case, level).is_none() {
            continue;
        }
        out.extend(case.regs.address_evidence(&format!("CP_{level}_BASE")));
        out.extend(case.regs.evidence(&format!("CP_{level}_REM_SIZE")));
        out.extend(case.regs.evidence(&format!("CP_{level}_BUFSZ")));
        out.extend(case.regs.field_evidence(&format!("CP_ROQ_AVAIL_{level}"), "REM"));
    }
    out.extend(case.regs.evidence("CP_RB_RPTR"));
    out.extend(case.dump.rings.get(ring).map(case::ring_evidence));
    if let Some(sqe) = &case.sqe {
        let dwords = |first: u64, words: &[u32]| {
            let (count, words) = (words.len() as u64, words.to_vec());
            case::seen(SQE, Fact::Dwords { level: None, first: Some(first), count, words, packet: None })
        };
        out.push(dwords(1, &sqe.registers));
        if !sqe.rest.is_empty() {
            out.push(dwords(1 + sqe.registers.len() as u64, &sqe.rest));
        }
    }
    out
}
