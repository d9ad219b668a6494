//! What the kernel says in words: the hang, processes, contexts, requests. Read when somebody asks.
//!
//! Facts: `error_msg`, `error_print_context`, `error_print_request` of `i915_gpu_error.c`, Linux 3.14 to 6.12.

use crate::intel::engine_id;
use crate::intel::text::{decimal, hex, hex_0x, split_once, trim};
use std::ops::Range;
use unwedge_hw::intel::platform::Engine as EngineId;

/// `GPU HANG: ecode 12:1:859ffffb, in game [1234]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HangMessage<'a> {
    /// Graphics version of the device; not of kernels before 3.17, which name the engine first.
    pub generation: Option<u32>,
    /// The engines or classes that hang, as a mask; before 5.2 the number of one engine, or -1.
    pub engines: i64,
    /// IPEHR xor INSTDONE of the first engine that hangs.
    pub code: u32,
    /// Who was on it.
    pub process: Option<&'a str>,
    /// Its process id.
    pub pid: Option<i64>,
    /// `hang on rcs0`, and what was done about it, of kernels before 5.2.
    pub reason: Option<&'a str>,
}

impl<'a> HangMessage<'a> {
    /// Reads what follows `GPU HANG: `.
    pub(super) fn parse(text: &'a str) -> Option<HangMessage<'a>> {
        let rest = text.strip_prefix("ecode ")?;
        let (code, rest) = rest.split_once(',').unwrap_or((rest, ""));
        let (before, code) = code.rsplit_once(':')?;
        let (generation, engines) = match before.split_once(':') {
            Some((generation, engines)) => (Some(generation.parse().ok()?), engines),
            None => (None, before),
        };
        let engines = engines.parse().ok().or_else(|| i64::from_str_radix(engines, 16).ok())?;
        let code = code.trim();
        let code = u32::from_str_radix(code.strip_prefix("0x").unwrap_or(code), 16).ok()?;
        let (who, reason) = match rest.split_once(", reason: ") {
            Some((who, reason)) => (who, Some(reason)),
            None => (rest, rest.trim_start().strip_prefix("reason: ")),
        };
        let who = who.trim_start().strip_prefix("in ").and_then(named);
        Some(HangMessage {
            generation,
            engines,
            code,
            process: who.map(|w| w.0),
            pid: who.map(|w| w.1),
            reason,
        })
    }
}

/// `name [pid]`; a name may hold anything.
fn named(text: &str) -> Option<(&str, i64)> {
    let open = text.rfind('[')?;
    let pid = text.get(open + 1..)?;
    let pid = pid.get(..pid.find(']')?)?.trim().parse().ok()?;
    Some((text.get(..open)?.trim_end(), pid))
}

/// `Active process (on ring rcs0): game [1234]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveProcess<'a> {
    /// Whose work it was.
    pub engine: Option<EngineId>,
    /// The name; the application may have set it.
    pub name: &'a str,
    /// Its process id.
    pub pid: i64,
}

impl<'a> ActiveProcess<'a> {
    pub(super) fn parse(key: &str, value: &'a str) -> Option<ActiveProcess<'a>> {
        let ring = key.strip_prefix("Active process (on ring ")?.strip_suffix(')')?;
        // Kernels of 4.12 to 5.6 go on about the context.
        let value = value.split(", context ").next()?;
        let (name, pid) = named(value)?;
        Some(ActiveProcess { engine: engine_id(ring), name, pid })
    }
}

/// `Active context: game[1234] prio 0, guilty 0 active 0, runtime total 13212ns, avg 1ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveContext<'a> {
    /// The process; the application may have set the name.
    pub name: &'a str,
    /// Its process id.
    pub pid: i64,
    /// Priority.
    pub priority: Option<i64>,
    /// How often work of this context was held to be guilty of a hang.
    pub guilty: Option<i64>,
    /// How often it was on an engine that hung for another's work.
    pub active: Option<i64>,
    /// Time on the engine, in nanoseconds.
    pub runtime: Option<i64>,
}

impl<'a> ActiveContext<'a> {
    pub(super) fn parse(text: &'a str) -> Option<ActiveContext<'a>> {
        let close = text.find("] ").or_else(|| text.rfind(']'))?;
        // The kernel's own context has no process.
        let (name, pid) = named(text.get(..=close)?).filter(|(name, _)| !name.is_empty())?;
        let rest = text.get(close + 1..)?.as_bytes();
        let after = |key: &str| decimal(trim(split_once(rest, key.as_bytes())?.1)).map(|(n, _)| n);
        Some(ActiveContext {
            name,
            pid,
            priority: after(" prio "),
            guilty: after("guilty "),
            active: after(" active "),
            runtime: after("runtime total "),
        })
    }
}

/// `pid 1234, seqno        5:00000002+, prio 0, head 00000040, tail 00000088`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// Whose it is (4.7 on).
    pub pid: Option<i64>,
    /// The context that numbers its requests (4.10 on).
    pub context: Option<u64>,
    /// Its number.
    pub seqno: u32,
    /// It is done.
    pub signaled: bool,
    /// Somebody waits for it.
    pub awaited: bool,
    /// Where it starts in the ring.
    pub head: Option<u32>,
    /// Where it ends in the ring.
    pub tail: Option<u32>,
}

impl RequestLine {
    /// Reads a port or a line of the list of requests.
    pub fn parse(text: &str) -> Option<RequestLine> {
        let text = text.as_bytes();
        let after = |key: &str| Some(trim(split_once(text, key.as_bytes())?.1));
        let number = |text| hex_0x(text).or_else(|| hex(text));
        let (first, rest) = number(after("seqno ")?)?;
        let (context, seqno, rest) = match rest.strip_prefix(b":") {
            Some(rest) => hex(rest).map(|(seqno, rest)| (Some(first), seqno, rest))?,
            None => (None, first, rest),
        };
        let has = |mark| rest.iter().take_while(|&&c| c == b'!' || c == b'+').any(|&c| c == mark);
        let offset = |key| u32::try_from(number(after(key)?)?.0).ok();
        Some(RequestLine {
            pid: after("pid ").and_then(decimal).map(|(pid, _)| pid),
            context,
            seqno: u32::try_from(seqno).ok()?,
            signaled: has(b'!'),
            awaited: has(b'+'),
            head: offset("head "),
            tail: offset("tail "),
        })
    }
}

/// `[0x00000000_00100000, 0x00000000_00101000]`.
pub(super) fn range(text: &str) -> Option<Range<u64>> {
    let half = |text: &str| {
        let (high, rest) = hex_0x(text.trim().as_bytes())?;
        let Some(low) = rest.strip_prefix(b"_") else { return Some(high) };
        Some(high.checked_mul(1 << 32)? | hex(low)?.0)
    };
    let (start, end) = text.trim().strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
    Some(half(start)?..half(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangs_of_every_era() {
        let hang = HangMessage::parse("ecode 12:1:859ffffb, in game [x] [1234]").unwrap();
        assert_eq!((hang.generation, hang.engines, hang.code), (Some(12), 1, 0x859f_fffb));
        assert_eq!((hang.process, hang.pid, hang.reason), (Some("game [x]"), Some(1234), None));
        let hang =
            HangMessage::parse("ecode 9:0:0x85dffffb, in Xorg [577], reason: Hang on rcs0, action: reset")
                .unwrap();
        assert_eq!((hang.process, hang.reason), (Some("Xorg"), Some("Hang on rcs0, action: reset")));
        let hang =
            HangMessage::parse("ecode 8:-1:0x00000000, reason: Kicking stuck wait on render ring").unwrap();
        assert_eq!(
            (hang.engines, hang.process, hang.reason),
            (-1, None, Some("Kicking stuck wait on render ring"))
        );
        let hang = HangMessage::parse("ecode 0:0x85fffff8, in Xorg [577], reason: Ring hung, action: reset")
            .unwrap();
        assert_eq!((hang.generation, hang.engines, hang.code), (None, 0, 0x85ff_fff8));
        assert_eq!((hang.process, hang.reason), (Some("Xorg"), Some("Ring hung, action: reset")));
        for text in ["ecode 8", "ecode 8:", "ecode a:b:c:1", "ecode :1:2"] {
            assert_eq!(HangMessage::parse(text), None, "{text}");
        }
    }

    #[test]
    fn contexts_and_requests() {
        let c =
            ActiveContext::parse("a b[12] prio -5, guilty 1 active 2, runtime total 77ns, avg 3ns").unwrap();
        assert_eq!(
            (c.name, c.pid, c.priority, c.guilty, c.active, c.runtime),
            ("a b", 12, Some(-5), Some(1), Some(2), Some(77))
        );
        let c = ActiveContext::parse("x[9] hw_id 4, prio 0, guilty 0 active 0").unwrap();
        assert_eq!((c.name, c.pid, c.priority, c.runtime), ("x", 9, Some(0), None));
        let r =
            RequestLine::parse("pid 1234, seqno        5:0000000a!+, prio 0, head 00000040, tail 00000088")
                .unwrap();
        assert_eq!(
            (r.pid, r.context, r.seqno, r.signaled, r.awaited, r.head, r.tail),
            (Some(1234), Some(5), 10, true, true, Some(0x40), Some(0x88))
        );
        let r = RequestLine::parse("  seqno 0x0000000a, emitted 4294937296, tail 0x00000088").unwrap();
        assert_eq!((r.pid, r.context, r.seqno, r.head, r.tail), (None, None, 10, None, Some(0x88)));
        assert_eq!(range("[0x00000001_00100000, 0x00000001_00101000]"), Some(0x1_0010_0000..0x1_0010_1000));
        assert_eq!(range("[0x1, 0x2]"), Some(1..2));
        assert_eq!(range("[0xffffffffffffffff_0, 0x2]"), None);
    }
}
