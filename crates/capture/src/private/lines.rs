//! Lines of text without private names: of dumps, and of kernel logs, where more is private.
//!
//! Of a line that is cut short, or in a form that is almost a known one, rather too much is taken for a name than too little.

use super::names::{PrivateKind, Pseudonyms, is_apart};
use crate::intel::text::{IntelLines, trim};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where a name is in a line: after `before`, up to the first of `ends`, or the end of the line.
struct NamePattern {
    /// The line has this, too.
    line: &'static str,
    before: &'static str,
    ends: &'static [&'static str],
    /// The last end counts: the name may hold anything.
    last: bool,
    /// Without one of `ends` the line names nothing: `before` is an ordinary word.
    needs_end: bool,
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
    NamePattern { line: "", before, ends, last: false, needs_end: false, kind, dumps }
}

use PrivateKind::{Command, Device, Host, Path, Process, Serial, Ssid, User};

/// Messages that name something private. A line may match several.
const PATTERNS: &[NamePattern] = &[
    // i915 and xe.
    NamePattern { line: "GPU HANG: ", last: true, ..pattern(", in ", &[" ["], Process, true) },
    NamePattern {
        line: "imedout job",
        last: true,
        needs_end: true,
        ..pattern(" in ", &[" ["], Process, true)
    },
    NamePattern {
        line: "Engine reset",
        last: true,
        needs_end: true,
        ..pattern(" in ", &[" ["], Process, true)
    },
    NamePattern { line: "Fence expiration time out", ..pattern(".0:", &["["], Process, false) },
    NamePattern { line: "Asynchronous wait on fence", ..pattern(".0:", &["["], Process, false) },
    NamePattern { line: "Active process (on ring ", ..pattern("): ", &[" [", "["], Process, true) },
    pattern("Active context: ", &["["], Process, true),
    pattern("(submitted by ", &[" [", "["], Process, true),
    pattern("Process: ", &[" ["], Process, true),
    // amdgpu.
    NamePattern { last: true, ..pattern("process_name: ", &[" PID: "], Process, true) },
    pattern("process_name:", &[" PID:"], Process, true),
    NamePattern { needs_end: true, ..pattern("process ", &[" pid "], Process, true) },
    NamePattern { needs_end: true, ..pattern("Process ", &[" pid "], Process, true) },
    NamePattern { needs_end: true, ..pattern("thread ", &[" pid "], Process, true) },
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
    NamePattern { line: " state:", ..pattern("task:", &[" state:"], Process, false) },
    NamePattern { line: "Killed process ", ..pattern(" (", &[")"], Process, false) },
    NamePattern { line: "oom-kill:", ..pattern(",task=", &[","], Process, false) },
    NamePattern { line: " uses 32-bit capabilities", ..pattern("warning: `", &["'"], Process, false) },
    NamePattern { line: " executable stack", ..pattern("process '", &["'"], Command, false) },
    pattern("comm=\"", &["\""], Process, false),
    pattern("comm=", &[" ", ","], Process, false),
    pattern("exe=\"", &["\""], Command, false),
    pattern("exe=", &[" "], Command, false),
    pattern("acct=\"", &["\""], User, false),
    pattern("cmdline=\"", &["\""], Command, false),
    pattern("cmd=\"", &["\""], Command, false),
    pattern("proctitle=", &[" "], Command, false),
    pattern("Command line: ", &[], Command, false),
    pattern("command line: ", &[], Command, false),
    pattern("Hostname set to <", &[">"], Host, false),
    pattern("Set hostname to <", &[">"], Host, false),
    pattern("hostname=", &[" "], Host, false),
    pattern("nfs: server ", &[" not responding", " OK"], Host, false),
    pattern("Attempting to mount ", &[], Host, false),
    pattern("SerialNumber: ", &[], Serial, false),
    pattern("Serial Number: ", &[], Serial, false),
    pattern("serial number ", &[" ", ","], Serial, false),
    pattern("serial=", &[" ", ","], Serial, false),
    pattern("S/N: ", &[" ", ","], Serial, false),
    pattern("androidboot.serialno=", &[" "], Serial, false),
    // Devices, which are named `Ada's Phone`.
    NamePattern { line: "usb ", ..pattern(": Product: ", &[], Device, false) },
    NamePattern { last: true, needs_end: true, ..pattern("input: ", &[" as /devices/"], Device, false) },
    NamePattern { line: "USB HID", last: true, needs_end: true, ..pattern(" [", &["] on "], Device, false) },
    NamePattern {
        line: "BLUETOOTH HID",
        last: true,
        needs_end: true,
        ..pattern(" [", &["] on "], Device, false)
    },
    // Wireless networks, as wpa_supplicant, iwd and NetworkManager write them.
    NamePattern { last: true, needs_end: true, ..pattern("SSID='", &["' freq", "')", "'"], Ssid, false) },
    NamePattern { last: true, ..pattern("SSID '", &["'"], Ssid, false) },
    NamePattern { last: true, ..pattern("SSID \"", &["\""], Ssid, false) },
    NamePattern { last: true, ..pattern("ssid=\"", &["\""], Ssid, false) },
    NamePattern { last: true, ..pattern("SSID: \"", &["\""], Ssid, false) },
    NamePattern { last: true, ..pattern("'ssid' value '", &["'"], Ssid, false) },
    pattern("ssid=", &[" ", ","], Ssid, false),
    NamePattern { last: true, ..pattern("wireless network \"", &["\""], Ssid, false) },
    NamePattern { last: true, ..pattern("Wi-Fi network \"", &["\""], Ssid, false) },
    // Records of the audit. What is not quoted is in hexadecimal.
    NamePattern { line: "audit", ..pattern("cwd=\"", &["\""], Path, false) },
    NamePattern { line: "audit", ..pattern("cwd=", &[" "], Path, false) },
    NamePattern { line: "audit", ..pattern("name=\"", &["\""], Path, false) },
    NamePattern { line: "audit", ..pattern("name=", &[" "], Path, false) },
    NamePattern { line: "audit", ..pattern("path=\"", &["\""], Path, false) },
    NamePattern { line: "argc=", ..pattern("a0=", &[], Command, false) },
];

/// Folders whose entries are named after users.
const HOMES: [&[u8]; 9] = [
    b"/home/",
    b"\\home\\",
    b"/Users/",
    b"/run/media/",
    b"/media/",
    b"\\users\\",
    b"\\Users\\",
    b"/drive_c/users/",
    b"/var/lib/AccountsService/users/",
];
/// What drivers print in the place of a process's name when there is no process.
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
    learn_lines(text, log, names);
    write_lines(text, log, names, out);
}

/// Makes the names known that the lines of a text have.
pub(super) fn learn_lines(text: &[u8], log: bool, names: &mut Pseudonyms) {
    for line in IntelLines::new(text) {
        // The user in a path is known, too, where the path is part of a name.
        let mut of_tokens = FoundNames::default();
        tokens(line.text, log, &mut of_tokens);
        for (kind, range) in named(line.text, log).names.into_iter().chain(of_tokens.names) {
            if let Some(name) = line.text.get(range) {
                names.learn(kind, name);
            }
        }
    }
}

/// Writes the lines of a text with pseudonyms, whose names are known.
pub(super) fn write_lines(text: &[u8], log: bool, names: &mut Pseudonyms, out: &mut Vec<u8>) {
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
    found.names.sort_by_key(|(_, range)| range.start);
    let mut at = 0;
    for (kind, range) in found.names {
        let Some(name) = line.get(range.clone()) else { continue };
        out.extend_from_slice(line.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(names.of(kind, name).as_bytes());
        at = range.end;
    }
    out.extend_from_slice(line.get(at..).unwrap_or_default());
}

/// Names in a line.
#[derive(Default)]
struct FoundNames {
    /// In the order in which they were found.
    names: Vec<(PrivateKind, Range<usize>)>,
    /// Where they start and end.
    places: BTreeMap<usize, usize>,
}

impl FoundNames {
    /// Adds a name. Of overlapping ones the first that was found counts.
    fn add(&mut self, kind: PrivateKind, range: Range<usize>) {
        let before = self.places.range(..range.end).next_back();
        if before.is_none_or(|(_, end)| *end <= range.start) {
            self.places.insert(range.start, range.end);
            self.names.push((kind, range));
        }
    }
}

/// What the message of a line names.
fn named(line: &[u8], log: bool) -> FoundNames {
    let mut found = FoundNames::default();
    if log && let Some(range) = host(line) {
        found.add(Host, range);
    }
    if log && let Some(range) = before_pid(line) {
        found.add(Process, range);
    }
    if log && let Some(range) = task_of_memory(line) {
        found.add(Process, range);
    }
    for pattern in PATTERNS.iter().filter(|pattern| log || pattern.dumps) {
        if !pattern.line.is_empty() && find(line, pattern.line.as_bytes()).is_none() {
            continue;
        }
        let Some(start) = after(line, pattern.before) else { continue };
        let rest = line.get(start..).unwrap_or_default();
        let ends = pattern.ends.iter().filter_map(|end| match pattern.last {
            true => rest.windows(end.len()).rposition(|window| window == end.as_bytes()),
            false => find(rest, end.as_bytes()),
        });
        let end = match ends.min() {
            Some(end) => end,
            None if pattern.needs_end => continue,
            None => rest.len(),
        };
        let name = rest.get(..end).unwrap_or_default();
        let blanks = name.len() - crate::intel::text::skip_blanks(name).len();
        let name = trim(name);
        if !name.is_empty() && !NOBODY.contains(&name) {
            found.add(pattern.kind, start + blanks..start + blanks + name.len());
        }
    }
    found
}

/// The end of a text where it first comes up in a line, and is not the end of a longer word.
fn after(line: &[u8], before: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + find(line.get(from..)?, before.as_bytes())?;
        let in_word = before.starts_with(|c: char| c.is_alphabetic())
            && at.checked_sub(1).and_then(|at| line.get(at)).is_some_and(|&c| is_word(c));
        if !in_word {
            return Some(at + before.len());
        }
        from = at + 1;
    }
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

/// `game[1234]: segfault at 0`, `game (1234): drop_caches: 3`
fn before_pid(line: &[u8]) -> Option<Range<usize>> {
    const MESSAGES: [&str; 9] = [
        "]: segfault at ",
        "]: unhandled ",
        "] general protection",
        "] trap ",
        "] context reset due to GPU hang",
        "): drop_caches",
        "): Using mlock ulimits",
        "): /proc/",
        ") used greatest stack depth",
    ];
    let at = MESSAGES.iter().find_map(|message| find(line, message.as_bytes()))?;
    let open = line.get(..at)?.iter().rposition(|&c| matches!(c, b'[' | b'('))?;
    let before = line.get(..open)?;
    let start = ["] ", "kernel: ", "traps: "]
        .iter()
        .filter_map(|mark| {
            before.windows(mark.len()).rposition(|window| window == mark.as_bytes()).map(|at| at + mark.len())
        })
        .max()
        .unwrap_or(0);
    let len = trim(before.get(start..)?).len();
    (len > 0).then_some(start..start + len)
}

/// The name at the end of a row of the tasks that the kernel lists when it runs out of memory: `[   1234]  1000  1234 …  0 game`.
fn task_of_memory(line: &[u8]) -> Option<Range<usize>> {
    /// Columns of numbers after the process id, at least.
    const COLUMNS: usize = 6;
    let number = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    let close = line.windows(2).rposition(|pair| pair == b"] ")?;
    let open = line.get(..close)?.iter().rposition(|&c| c == b'[')?;
    if !number(trim(line.get(open + 1..close)?)) {
        return None;
    }
    let (mut at, mut columns) = (close + 1, 0);
    loop {
        at += line.get(at..)?.iter().take_while(|&&c| c == b' ').count();
        let len = line.get(at..)?.iter().position(|&c| c == b' ').unwrap_or(line.len() - at);
        if !number(line.get(at..at + len)?) {
            break;
        }
        (at, columns) = (at + len, columns + 1);
    }
    (columns >= COLUMNS && at < line.len()).then_some(at..line.len())
}

/// Users in paths and accounts; of a log also addresses of networks and UUIDs.
fn tokens(line: &[u8], log: bool, found: &mut FoundNames) {
    for home in HOMES {
        let mut from = 0;
        while let Some(at) = line.get(from..).and_then(|rest| find(rest, home)) {
            let start = from + at + home.len();
            let rest = line.get(start..).unwrap_or_default();
            let len = rest.iter().take_while(|&&c| !ends_user(c)).count();
            if len > 0 {
                found.add(User, start..start + len);
            }
            from = start + len;
        }
    }
    // `67.5.10.1` is a chip where a driver of GPUs prints it.
    let of_gpu = [&b"[drm"[..], b"msm", b"adreno"].iter().any(|driver| find(line, driver).is_some());
    let is_token = |c: u8| is_word(c) || matches!(c, b':' | b'.' | b'@' | b'+') || c >= 0x80;
    let mut at = 0;
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let len = rest.iter().take_while(|&&c| is_token(c)).count();
        let token = rest.get(..len).unwrap_or_default();
        let trimmed = token.len() - token.iter().rev().take_while(|&&c| matches!(c, b':' | b'.')).count();
        let token = token.get(..trimmed).unwrap_or_default();
        if let Some(kind) = token_kind(token, log, of_gpu) {
            found.add(kind, at..at + token.len());
        }
        at += len.max(1);
    }
}

fn token_kind(token: &[u8], log: bool, of_gpu: bool) -> Option<PrivateKind> {
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
    // A port may follow.
    let address = parts(b':').next()?;
    let bytes = || address.split(|&c| c == b'.');
    (!of_gpu && bytes().count() == 4 && bytes().all(number)).then_some(PrivateKind::Network)
}

/// Names that are known, where they are words of their own.
fn words(line: &[u8], names: &Pseudonyms, found: &mut FoundNames) {
    let mut at = 0;
    while at < line.len() {
        let mut len = 1;
        if is_apart(at.checked_sub(1).and_then(|before| line.get(before)))
            && let Some((kind, length)) = names.word_at(line.get(at..).unwrap_or_default())
        {
            len = length;
            found.add(kind, at..at + len);
        }
        at += len;
    }
}

/// Whether the name of a user in a path ends here. It may be an address of mail.
fn ends_user(c: u8) -> bool {
    c.is_ascii_whitespace()
        || c.is_ascii_control()
        || matches!(
            c,
            b'/' | b'\\' | b'"' | b'\'' | b'`' | b':' | b',' | b';' | b')' | b']' | b'<' | b'>' | b'|'
        )
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
            ("[drm] GT0: quake[77] context reset due to GPU hang", "quake"),
            ("Fence expiration time out i915-0000:00:02.0:gnome shell[2213]:3e4!", "gnome"),
            ("Asynchronous wait on fence 0000:00:02.0:quake[2213]:1f1c0 timed out (hint:x)", "quake"),
            ("msm: offending task: game (/opt/game --token hunter2", "hunter2"),
            ("audit: type=1327 proctitle=2F62696E2F", "2F62"),
            ("subprocess list: process quake pid 3", "quake"),
            ("task:quake 3        state:D stack:0     pid:4711", "quake"),
            ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=quake,pid=4711,uid=1000", "quake"),
            (
                "[  4.2] [   4711]  1000  4711   123456     1234   200704        0          -200 my quake",
                "my quake",
            ),
            ("[  4.2] bash (4711): drop_caches: 3", "bash"),
            ("bash (4711) used greatest stack depth: 12000 bytes left", "bash"),
            ("process '/opt/quake' started with executable stack", "quake"),
            ("systemd[1]: Set hostname to <tower>.", "tower"),
            ("nfs: server nas.example not responding, still trying", "nas"),
            ("game: /home/ann@corp.example/game", "corp"),
            ("carol: /home/carol/game", "carol"),
            ("eth0: link up 52:54:00:12:34:56", "52:54"),
            ("wlan0: fe80::1ff:fe23:4567:890a joined", "fe80"),
            ("audit: addr=192.168.1.17 terminal", "192.168"),
            ("IN=eth0 SRC=2.3.4.5 DST=8.8.8.8", "2.3.4.5"),
            ("tcp: 2.3.4.5:8080 is flooded", "2.3.4.5"),
            ("/home/alice/game\nusb 1-3: Product: Alice's Phone", "Alice"),
            ("usb 1-1: SerialNumber: 4C5300011212", "4C53"),
            ("usb 1-3: Product: Ada's Phone", "Ada"),
            ("input: Ada's Keyboard as /devices/pci0000:00/0000:00:14.0/usb1/1-3/input/input5", "Ada"),
            (
                "hid-generic 0003:05AC:024F.0001: input,hidraw0: USB HID v1.11 Keyboard [Ada's Keyboard] on usb-0/input0",
                "Ada",
            ),
            (
                "wlan0: SME: Trying to authenticate with 0a:00:27:00:00:01 (SSID='Hinterhaus' freq=2412 MHz)",
                "Hinterhaus",
            ),
            ("wlan0: Trying to associate with SSID 'The 'Hinterhaus''", "Hinterhaus"),
            ("Config: added 'ssid' value 'Hinterhaus'", "Hinterhaus"),
            ("Connected to wireless network \"Hinterhaus\"", "Hinterhaus"),
            ("event: connect, ssid=Hinterhaus, channel 6", "Hinterhaus"),
            ("audit: type=1307 audit(1764244800.123:45): cwd=\"/srv/divorce\"", "divorce"),
            (
                "audit: type=1302 audit(1764244800.123:45): item=0 name=\"/srv/divorce/a.odt\" inode=9",
                "divorce",
            ),
            ("type=PATH msg=audit(1764244800.123:45): item=0 name=2F7372762F64 inode=9", "2F73"),
            (
                "audit: type=1309 audit(1764244800.123:45): argc=2 a0=\"game\" a1=\"--token=hunter2\"",
                "hunter2",
            ),
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
            "msm_dpu ae01000.gpu: [drm:recover_worker] *ERROR* 67.5.10.1: hangcheck recover!\n",
            "i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffffb, in no process [-1]",
            "amdgpu: ring gfx timeout, process information follows\n",
            "[    1.0] [drm] 1 2 3 4 5 6 7 rows\n",
            "adreno 5000000.gpu: [drm:a6xx_irq] *ERROR* gpu fault ring 0 fence 1 status 00E51005\n",
            "xe 0000:03:00.0: [drm] Using GuC firmware from xe/lnl_guc_70.bin version 70.36.0 at 12:00:01\n",
        ] {
            assert_eq!(log(line), line);
        }
    }

    /// A log of many names that begin alike, and a line of many accounts: time that grows with the square would be minutes.
    #[test]
    fn hostile_logs_take_time_by_their_size() {
        let mut text: String = (0..4000).map(|n| format!("Comm: aaaa{n} Not tainted\n")).collect();
        text.push_str(&"aaaa aaa-a ".repeat(100_000));
        text.push('\n');
        text.push_str(&"a@b /home/c ".repeat(100_000));
        let start = std::time::Instant::now();
        let out = log(&text);
        assert_eq!(out.matches("account-1 /home/user-1 ").count(), 100_000);
        assert!(out.starts_with("Comm: process-1 Not tainted\nComm: process-2 "), "{}", &out[..100]);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
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
