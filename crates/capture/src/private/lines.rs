//! Lines of text without private names: of dumps, and of kernel logs, where more is private.

use super::names::{PrivateKind, Pseudonyms};
use crate::intel::text::{IntelLines, trim};
use std::ops::Range;

/// Where a name is in a line: after `before`, up to the first of `ends`, or the end of the line.
struct NamePattern {
    /// The line has this, too.
    line: &'static str,
    before: &'static str,
    ends: &'static [&'static str],
    /// The last end counts: the name may hold anything.
    last: bool,
    kind: PrivateKind,
    /// In dumps, too; else in logs only.
    dumps: bool,
}

const fn pattern(
    before: &'static str,
    ends: &'static [&'static str],
    kind: PrivateKind,
    dumps: bool,
) -> NamePattern {
    NamePattern { line: "", before, ends, last: false, kind, dumps }
}

use PrivateKind::{Command, Host, Process, Serial};

/// Messages that name something private. A line may match several.
const PATTERNS: &[NamePattern] = &[
    // i915 and xe.
    NamePattern { line: "GPU HANG: ", last: true, ..pattern(", in ", &[" ["], Process, true) },
    NamePattern { line: "imedout job", last: true, ..pattern(" in ", &[" ["], Process, true) },
    NamePattern { line: "Engine reset", last: true, ..pattern(" in ", &[" ["], Process, true) },
    NamePattern { line: "Active process (on ring ", ..pattern("): ", &[" [", "["], Process, true) },
    pattern("Active context: ", &["["], Process, true),
    pattern("(submitted by ", &[" [", "["], Process, true),
    pattern("Process: ", &[" ["], Process, true),
    // amdgpu.
    NamePattern { last: true, ..pattern("process_name: ", &[" PID: "], Process, true) },
    pattern("process_name:", &[" PID:"], Process, true),
    pattern("process ", &[" pid "], Process, true),
    pattern("Process ", &[" pid "], Process, true),
    pattern("thread ", &[" pid "], Process, true),
    // RADV.
    pattern("Application name:", &[], Process, true),
    pattern("Application name =", &[], Process, true),
    pattern("Engine name:", &[], Process, true),
    pattern("Engine name =", &[], Process, true),
    pattern("Executable:", &[], Command, true),
    // msm.
    pattern("offending task: ", &[" ("], Process, false),
    NamePattern { line: "offending task: ", last: true, ..pattern(" (", &[")"], Command, false) },
    // The kernel as a whole.
    pattern("Comm: ", &[" Not tainted", " Tainted:", " Kdump"], Process, false),
    NamePattern { line: " blocked for more than ", ..pattern("task ", &[":"], Process, false) },
    NamePattern { line: "Killed process ", ..pattern(" (", &[")"], Process, false) },
    pattern("comm=\"", &["\""], Process, false),
    pattern("comm=", &[" ", ","], Process, false),
    pattern("exe=\"", &["\""], Command, false),
    pattern("cmdline=\"", &["\""], Command, false),
    pattern("cmd=\"", &["\""], Command, false),
    pattern("proctitle=", &[" "], Command, false),
    pattern("Command line: ", &[], Command, false),
    pattern("command line: ", &[], Command, false),
    pattern("Hostname set to <", &[">"], Host, false),
    pattern("hostname=", &[" "], Host, false),
    pattern("SerialNumber: ", &[], Serial, false),
    pattern("Serial Number: ", &[], Serial, false),
    pattern("serial number ", &[" ", ","], Serial, false),
    pattern("serial=", &[" ", ","], Serial, false),
    pattern("S/N: ", &[" ", ","], Serial, false),
    pattern("androidboot.serialno=", &[" "], Serial, false),
];

/// Folders whose entries are named after users.
const HOMES: [&[u8]; 8] = [
    b"/home/",
    b"/Users/",
    b"/run/media/",
    b"/media/",
    b"\\users\\",
    b"\\Users\\",
    b"/drive_c/users/",
    b"/var/lib/AccountsService/users/",
];
/// Names that stand where that of a process would, and are of nobody.
const NOBODY: [&[u8]; 6] = [b"no process", b"<unknown>", b"unknown", b"(null)", b"none", b"swapper/0"];

/// A text of a dump without private names: processes that its lines name, users in paths, accounts, and names that `names` knows.
pub fn rewrite_text(text: &[u8], names: &mut Pseudonyms, out: &mut Vec<u8>) {
    rewrite(text, false, names, out);
}

/// A kernel log without private names, addresses of networks, serial numbers and the name of the machine.
pub fn rewrite_log(text: &[u8], names: &mut Pseudonyms, out: &mut Vec<u8>) {
    rewrite(text, true, names, out);
}

fn rewrite(text: &[u8], log: bool, names: &mut Pseudonyms, out: &mut Vec<u8>) {
    // A name may be in lines before the one that says that it is one.
    for line in IntelLines::new(text) {
        for (kind, range) in named(line.text, log) {
            if let Some(name) = line.text.get(range) {
                names.learn(kind, name);
            }
        }
    }
    for line in IntelLines::new(text) {
        let raw = text.get(line.span.start as usize..line.span.end as usize).unwrap_or_default();
        let end = raw.get(line.text.len()..).unwrap_or_default();
        rewrite_line(line.text, log, names, out);
        out.extend_from_slice(end);
    }
}

fn rewrite_line(line: &[u8], log: bool, names: &mut Pseudonyms, out: &mut Vec<u8>) {
    let mut found = named(line, log);
    tokens(line, log, &mut found);
    words(line, names, &mut found);
    // Of overlapping ones the first that was found counts.
    let mut taken: Vec<(PrivateKind, Range<usize>)> = Vec::new();
    for (kind, range) in found {
        if taken.iter().all(|(_, other)| range.end <= other.start || other.end <= range.start) {
            taken.push((kind, range));
        }
    }
    taken.sort_by_key(|(_, range)| range.start);
    let mut at = 0;
    for (kind, range) in taken {
        let Some(name) = line.get(range.clone()) else { continue };
        out.extend_from_slice(line.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(names.of(kind, name).as_bytes());
        at = range.end;
    }
    out.extend_from_slice(line.get(at..).unwrap_or_default());
}

/// What the message of a line names.
fn named(line: &[u8], log: bool) -> Vec<(PrivateKind, Range<usize>)> {
    let mut found = Vec::new();
    if log && let Some(range) = host(line) {
        found.push((Host, range));
    }
    if log && let Some(range) = faulting(line) {
        found.push((Process, range));
    }
    for pattern in PATTERNS.iter().filter(|pattern| log || pattern.dumps) {
        if !pattern.line.is_empty() && find(line, pattern.line.as_bytes()).is_none() {
            continue;
        }
        let Some(at) = find(line, pattern.before.as_bytes()) else { continue };
        if at > 0 && pattern.before.starts_with(|c: char| c.is_alphabetic()) && is_word(line[at - 1]) {
            continue;
        }
        let start = at + pattern.before.len();
        let rest = line.get(start..).unwrap_or_default();
        let ends = pattern.ends.iter().filter_map(|end| match pattern.last {
            true => rest.windows(end.len()).rposition(|window| window == end.as_bytes()),
            false => find(rest, end.as_bytes()),
        });
        let end = match ends.min() {
            Some(end) => end,
            // `process 3 pid` and the like name nothing without their end.
            None if pattern.ends.is_empty()
                || matches!(pattern.before, "Comm: " | "comm=" | "serial=" | "Process: ") =>
            {
                rest.len()
            }
            None => continue,
        };
        let name = rest.get(..end).unwrap_or_default();
        let blanks = name.len() - crate::intel::text::skip_blanks(name).len();
        let name = trim(name);
        if !name.is_empty() && !NOBODY.contains(&name) {
            found.push((pattern.kind, start + blanks..start + blanks + name.len()));
        }
    }
    found
}

/// The name of the machine, which a log of journald or syslog has in each line after the time.
fn host(line: &[u8]) -> Option<Range<usize>> {
    let word = |from: usize| {
        let rest = line.get(from..)?;
        let len = rest.iter().position(|&c| c == b' ')?;
        Some(from..from + len)
    };
    let text = |range: &Range<usize>| line.get(range.clone()).unwrap_or_default();
    let is_time = |text: &[u8]| {
        text.len() >= 8
            && text.get(2) == Some(&b':')
            && text.get(5) == Some(&b':')
            && text[0].is_ascii_digit()
    };
    let first = word(0)?;
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let host = if MONTHS.contains(&text(&first)) {
        let blanks = line.get(first.end..)?.iter().take_while(|&&c| c == b' ').count();
        let time = word(word(first.end + blanks)?.end + 1)?;
        word(time.end + 1).filter(|_| is_time(text(&time)))?
    } else {
        let stamp = text(&first);
        let iso = stamp.len() >= 19 && stamp.get(4) == Some(&b'-') && stamp.get(10) == Some(&b'T');
        word(first.end + 1).filter(|_| iso)?
    };
    let after = line.get(host.end..)?;
    // The program that wrote the line follows.
    let program = after.get(1..)?.iter().position(|&c| c == b':')?;
    (program < 64 && !host.is_empty() && !text(&host).starts_with(b"[")).then_some(host)
}

/// `game[1234]: segfault at 0`
fn faulting(line: &[u8]) -> Option<Range<usize>> {
    let at = ["]: segfault at ", "]: unhandled ", "] general protection", "] trap "]
        .iter()
        .find_map(|message| find(line, message.as_bytes()))?;
    let open = line.get(..at)?.iter().rposition(|&c| c == b'[')?;
    let before = line.get(..open)?;
    let start = ["] ", "kernel: ", "traps: "]
        .iter()
        .filter_map(|mark| {
            before.windows(mark.len()).rposition(|window| window == mark.as_bytes()).map(|at| at + mark.len())
        })
        .max()
        .unwrap_or(0);
    (start < open).then_some(start..open)
}

/// Users in paths and accounts; of a log also addresses of networks and UUIDs.
fn tokens(line: &[u8], log: bool, found: &mut Vec<(PrivateKind, Range<usize>)>) {
    for home in HOMES {
        let mut from = 0;
        while let Some(at) = line.get(from..).and_then(|rest| find(rest, home)) {
            let start = from + at + home.len();
            let rest = line.get(start..).unwrap_or_default();
            let len = rest.iter().take_while(|&&c| is_word(c) || c == b'.' || c >= 0x80).count();
            if len > 0 {
                found.push((PrivateKind::User, start..start + len));
            }
            from = start + len;
        }
    }
    let is_token = |c: u8| is_word(c) || matches!(c, b':' | b'.' | b'@' | b'+') || c >= 0x80;
    let mut at = 0;
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let len = rest.iter().take_while(|&&c| is_token(c)).count();
        let token = rest.get(..len).unwrap_or_default();
        let trimmed = token.len() - token.iter().rev().take_while(|&&c| matches!(c, b':' | b'.')).count();
        let token = token.get(..trimmed).unwrap_or_default();
        if let Some(kind) = token_kind(token, log) {
            found.push((kind, at..at + token.len()));
        }
        at += len.max(1);
    }
}

fn token_kind(token: &[u8], log: bool) -> Option<PrivateKind> {
    let hex = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
    let parts = |at: u8| token.split(move |&c| c == at);
    if let Some(at) = token.iter().position(|&c| c == b'@') {
        let (user, host) = (token.get(..at)?, token.get(at + 1..)?);
        let letters = |text: &[u8]| text.iter().any(u8::is_ascii_alphabetic) && !text.starts_with(b"0x");
        return (letters(user) && letters(host) && !user.contains(&b':') && log)
            .then_some(PrivateKind::Account);
    }
    if !log {
        return None;
    }
    let lengths = |at: u8| parts(at).map(<[u8]>::len).collect::<Vec<_>>();
    let colons = token.iter().filter(|&&c| c == b':').count();
    if colons >= 2 && parts(b':').all(hex) {
        // A time has two colons, an address of PCI two and a point.
        let ipv6 = colons >= 4 || token.windows(2).any(|pair| pair == b"::");
        return ipv6.then_some(PrivateKind::Network);
    }
    if token.contains(&b'-') && parts(b'-').all(hex) {
        return match lengths(b'-')[..] {
            [8, 4, 4, 4, 12] => Some(Serial),
            [2, 2, 2, 2, 2, 2] => Some(PrivateKind::Network),
            _ => None,
        };
    }
    let number = |part: &[u8]| {
        part.iter().all(u8::is_ascii_digit)
            && std::str::from_utf8(part).is_ok_and(|n| n.parse::<u8>().is_ok())
    };
    // `6.3.0.2` is a chip.
    let of_chip = token.get(1) == Some(&b'.');
    (!of_chip && lengths(b'.').len() == 4 && parts(b'.').all(number)).then_some(PrivateKind::Network)
}

/// Names that are known, where they are words of their own.
fn words(line: &[u8], names: &Pseudonyms, found: &mut Vec<(PrivateKind, Range<usize>)>) {
    for (kind, word) in names.words() {
        let mut from = 0;
        while let Some(at) = line.get(from..).and_then(|rest| find(rest, word)) {
            let (start, end) = (from + at, from + at + word.len());
            let apart = |c: Option<&u8>| c.is_none_or(|&c| !c.is_ascii_alphanumeric());
            if apart(start.checked_sub(1).and_then(|before| line.get(before))) && apart(line.get(end)) {
                found.push((*kind, start..end));
            }
            from = end;
        }
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-')
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|&c| c == first)?;
        if text.get(at..)?.starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> String {
        let mut out = Vec::new();
        rewrite_log(text.as_bytes(), &mut Pseudonyms::default(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn messages_of_drivers() {
        for (line, private) in [
            ("i915: GPU HANG: ecode 12:1:85dffffb, in glx gears [321]", "glx gears"),
            (
                "amdgpu: Process information: process witcher3.exe pid 22 thread witcher3.:cs0 pid 29",
                "witcher3",
            ),
            (
                "msm_dpu: [drm:recover_worker] *ERROR* 6.3.0.2: offending task: chrome (/opt/chrome --type=gpu)",
                "chrome",
            ),
            (
                "xe 0000:03:00.0: [drm] GT0: Timedout job: seqno=5, lrc_seqno=5, guc_id=2, flags=0x0 in vkcube [99]",
                "vkcube",
            ),
            ("CPU: 3 UID: 1000 PID: 77 Comm: plasma shell Not tainted 6.12.0", "plasma shell"),
            ("INFO: task Xorg:cs0:1234 blocked for more than 120 seconds.", "Xorg"),
            ("[  12.5] quake[77]: segfault at 0 ip 00007f", "quake"),
            ("Kernel command line: BOOT_IMAGE=/vmlinuz root=UUID=1b2c quiet", "BOOT_IMAGE"),
            ("opened /home/alice/game.bin", "alice"),
            (r"loading C:\users\bob\x.dll", "bob"),
            ("Linux version 6.12 (builder@farm7.example) (gcc)", "farm7"),
            ("eth0: link up 52:54:00:12:34:56", "52:54"),
            ("wlan0: fe80::1ff:fe23:4567:890a joined", "fe80"),
            ("audit: addr=192.168.1.17 terminal", "192.168"),
            ("usb 1-1: SerialNumber: 4C5300011212", "4C53"),
            ("EXT4-fs (sda1): mounted 123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("Nov 27 12:00:01 workstation kernel: [drm] hang", "workstation"),
            ("2026-11-27T12:00:01.000000+00:00 laptop kernel: [drm] hang", "laptop"),
        ] {
            let out = log(line);
            assert!(!out.contains(private), "{line} -> {out}");
        }
    }

    #[test]
    fn what_a_hang_is_about_stays() {
        for line in [
            "[   12.345678] amdgpu 0000:03:00.0: [drm] *ERROR* ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7\n",
            "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32770)\r\n",
            "msm_dpu 5000000.gpu: [drm:recover_worker] *ERROR* 6.3.0.2: hangcheck recover!\n",
            "i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffffb, in no process [-1]",
            "adreno 5000000.gpu: [drm:a6xx_irq] *ERROR* gpu fault ring 0 fence 1 status 00E51005\n",
            "xe 0000:03:00.0: [drm] Using GuC firmware from xe/lnl_guc_70.bin version 70.36.0 at 12:00:01\n",
        ] {
            assert_eq!(log(line), line);
        }
    }

    #[test]
    fn a_name_is_one_pseudonym_everywhere() {
        let text = "game started\nComm: game Not tainted\ngame: done, gamemode stays\n";
        assert_eq!(
            log(text),
            "process-1 started\nComm: process-1 Not tainted\nprocess-1: done, gamemode stays\n"
        );
    }
}
