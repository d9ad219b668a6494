//! `unwedge breadcrumbs listen`, and the CPU's side of breadcrumbs in `unwedge replay`: sockets, the terminal, commands.
//!
//! Never: what a number means.

use crate::args::{BreadcrumbsCommand, BreadcrumbsListen, Global, Replay};
use crate::bounded::Interrupts;
use crate::database;
use crate::dump::open_capture;
use crate::edit::{CaptureFile, failed as rewrite_failed};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::progress::ProgressLine;
use crate::temporary::TemporaryFolder;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use unwedge::edit::breadcrumbs::{
    BreadcrumbEditor, BreadcrumbMap, BreadcrumbStats, BreadcrumbTarget, BreakGate, Breakpoint, Receipt,
    datagram, read_datagram,
};
use unwedge::edit::rewrite::{AddressSpace, rewrite};
use unwedge::hw::Db;
use unwedge::sim::adreno::{CpuThread, Onward};
use unwedge_view::breadcrumbs;

/// The longest time between two looks at signals and the terminal.
const LOOK: Duration = Duration::from_millis(100);
/// After this time of silence breadcrumbs of another sender are shown.
const SILENCE: Duration = Duration::from_secs(5);
/// More than a breadcrumb has: longer datagrams are cut off.
const DATAGRAM: usize = 16;
/// Datagrams that wait to be shown. When there are more, the system keeps some and drops others.
const WAITING: usize = 1 << 14;

/// Runs the command.
pub fn run(command: &BreadcrumbsCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        BreadcrumbsCommand::Listen(args) => listen(args, global),
    }
}

fn listen(args: &BreadcrumbsListen, global: &Global) -> Result<Outcome, Failure> {
    let map = args.capture.as_deref().map(|file| read_map(file, global)).transpose()?;
    let unusable = |e: io::Error| Failure::Unusable(format!("{}:{}: {e}", args.bind, args.port));
    let socket = UdpSocket::bind((args.bind, args.port)).map_err(unusable)?;
    let interrupts =
        Interrupts::take().map_err(|e| Failure::Unusable(format!("cannot handle signals: {e}")))?;
    let address = socket.local_addr().map_err(unusable)?;
    let datagrams = receive(socket);
    complain!("listening on {address}");
    let mut out = Output::open(global, false);
    let (mut listener, mut progress) = (Listener::new(args), ProgressLine::default());
    let start = Instant::now();
    while !interrupts.happened() {
        let received = datagrams.recv_timeout(LOOK);
        let now = start.elapsed();
        match received {
            Ok(Ok(Datagram { bytes, size, sender })) => {
                let receipt = listener.take(&bytes[..size], sender, now);
                if let Some((breadcrumb, receipt)) = receipt.filter(|_| !args.json) {
                    // A failed write is remembered by `out`, and reported by its `finish`.
                    let stats = &listener.stats;
                    if breadcrumbs::line(breadcrumb, receipt, stats, map.as_ref(), &mut out).is_err() {
                        break;
                    }
                }
            }
            Ok(Err(e)) => return Err(unusable(e)),
            // Nothing came.
            Err(RecvTimeoutError::Timeout) => {
                let _ = out.flush();
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let idle = args.idle.filter(|_| listener.sender.is_some());
        if idle.is_some_and(|idle| now.saturating_sub(listener.heard) >= idle) {
            break;
        }
        progress.show(|| breadcrumbs::status(&listener.stats, now));
    }
    drop(progress);
    let (stats, foreign) = (&listener.stats, listener.foreign);
    // As above.
    let _ = match args.json {
        true => breadcrumbs::json(stats, foreign, map.as_ref(), &mut out),
        false => breadcrumbs::text(stats, foreign, map.as_ref(), &mut out),
    };
    out.finish()?;
    Ok(Outcome::Complete)
}

/// A datagram as it came.
struct Datagram {
    bytes: [u8; DATAGRAM],
    size: usize,
    sender: SocketAddr,
}

/// Takes datagrams from a socket in a thread of its own, so that few are lost while others are printed. The thread ends with the program, after
/// an error, or when nobody takes what it has.
fn receive(socket: UdpSocket) -> Receiver<io::Result<Datagram>> {
    let (received, datagrams) = sync_channel(WAITING);
    thread::spawn(move || {
        loop {
            let mut bytes = [0; DATAGRAM];
            let datagram = match socket.recv_from(&mut bytes) {
                Ok((size, sender)) => Ok(Datagram { bytes, size, sender }),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => Err(e),
            };
            let failed = datagram.is_err();
            if received.send(datagram).is_err() || failed {
                break;
            }
        }
    });
    datagrams
}

/// Whose breadcrumbs are shown, and what they are.
struct Listener<'a> {
    args: &'a BreadcrumbsListen,
    sender: Option<SocketAddr>,
    /// When a breadcrumb of theirs came.
    heard: Duration,
    stats: BreadcrumbStats,
    /// Datagrams of others.
    foreign: u64,
}

impl Listener<'_> {
    fn new(args: &BreadcrumbsListen) -> Listener<'_> {
        let (heard, stats) = (Duration::ZERO, BreadcrumbStats::default());
        Listener { args, sender: None, heard, stats, foreign: 0 }
    }

    /// Takes a datagram. The breadcrumb that it is, if it is one that is shown.
    fn take(&mut self, bytes: &[u8], sender: SocketAddr, now: Duration) -> Option<(u32, Receipt)> {
        if self.args.from.is_some_and(|wanted| wanted != sender.ip()) {
            self.foreign += 1;
            return None;
        }
        let Ok(breadcrumb) = read_datagram(bytes) else {
            self.stats.malformed();
            return None;
        };
        let silent = now.saturating_sub(self.heard) >= SILENCE;
        if self.sender.is_some_and(|shown| shown != sender && !silent) {
            self.foreign += 1;
            return None;
        }
        if self.sender != Some(sender) {
            let malformed = std::mem::take(&mut self.stats).malformed;
            self.stats.malformed = malformed;
            self.sender = Some(sender);
        }
        self.heard = now;
        let receipt = self.stats.take(breadcrumb, now);
        (receipt != Receipt::Doubled).then_some((breadcrumb, receipt))
    }
}

/// The addresses that a capture uses.
fn space_of(file: &Path) -> Result<AddressSpace, Failure> {
    Ok(AddressSpace::scan(open_capture(file)?))
}

/// Which packets of a capture have which breadcrumbs.
fn read_map(file: &Path, global: &Global) -> Result<BreadcrumbMap, Failure> {
    let db = database::load(global)?;
    let read = BreadcrumbMap::read(space_of(file)?, open_capture(file)?, &db, global.max_size);
    let (map, rewritten) = read.map_err(|e| Failure::Unusable(format!("{}: {e}", file.display())))?;
    Outcome::of(&file.display().to_string(), &rewritten.diagnostics);
    if map.is_empty() {
        complain!("{}: it has no draws, dispatches or blits", file.display());
    }
    Ok(map)
}

/// A capture with breadcrumbs in place of one without, while this lives.
pub struct Instrumented {
    _folder: TemporaryFolder,
    /// Where it is.
    pub file: PathBuf,
}

/// Puts breadcrumbs into a capture, at which the GPU waits for the CPU; `None` if it has them.
///
/// # Errors
/// When they cannot be put there.
pub fn instrument(
    name: &str,
    capture: &CaptureFile,
    db: &Db,
    global: &Global,
) -> Result<Option<Instrumented>, Failure> {
    let folder = TemporaryFolder::new("breadcrumbs").map_err(|(folder, e)| Failure::Write(folder, e))?;
    let file = folder.file("capture.rd");
    let failed = |e| Failure::Write(file.display().to_string(), e);
    let mut out = BufWriter::new(File::create_new(&file).map_err(failed)?);
    let mut editor = BreadcrumbEditor::new(true);
    let space = AddressSpace::scan(capture.open()?);
    match rewrite(capture.open()?, space, &mut editor, db, global.max_size, &mut out) {
        Err(_) if editor.found_others() => return Ok(None),
        Err(e) => return Err(rewrite_failed(name, e)),
        Ok(rewritten) => Outcome::of(name, &rewritten.diagnostics),
    };
    out.flush().map_err(failed)?;
    Ok(Some(Instrumented { _folder: folder, file }))
}

/// The thread of the CPU: sends breadcrumbs, and asks at the breakpoint.
pub struct BreadcrumbThread {
    socket: UdpSocket,
    to: SocketAddr,
    gate: BreakGate,
    ask: Option<OsString>,
    complained: bool,
}

impl BreadcrumbThread {
    /// The one that the options ask for.
    ///
    /// # Errors
    /// When no socket can be opened, or the terminal is taken.
    pub fn new(args: &Replay, target: BreadcrumbTarget) -> Result<BreadcrumbThread, Failure> {
        let stops = target.breakpoint.breadcrumb != Breakpoint::NEVER;
        if stops && args.step.is_some() && args.ack_command.is_none() {
            let message = "--step reads standard input, too: acknowledge breadcrumbs with --ack-command";
            return Err(Failure::Usage(message.to_owned()));
        }
        let any = if target.address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))
            .map_err(|e| Failure::Unusable(format!("breadcrumbs cannot be sent: {e}")))?;
        let (gate, ask) = (BreakGate::new(target.breakpoint), args.ack_command.clone());
        Ok(BreadcrumbThread { socket, to: target.address, gate, ask, complained: false })
    }

    /// Whether the GPU may go on.
    fn ask(&self, breadcrumb: u32) -> bool {
        match &self.ask {
            Some(program) => {
                let mut command = Command::new(program);
                command.arg(breadcrumb.to_string()).stdin(Stdio::null()).stdout(io::stderr());
                match command.status() {
                    Ok(status) => status.success(),
                    Err(e) => {
                        complain!("{}: {e}", program.to_string_lossy());
                        false
                    }
                }
            }
            None => ask_at_terminal(breadcrumb),
        }
    }
}

/// Reads lines until one is `y`, to go on, or `q`, or they end.
fn ask_at_terminal(breadcrumb: u32) -> bool {
    let mut lines = io::stdin().lock().lines();
    loop {
        let _ = write!(io::stderr(), "GPU is on breadcrumb {breadcrumb}, continue? (y, q) ");
        match lines.next() {
            Some(Ok(line)) if line.trim() == "y" => return true,
            Some(Ok(line)) if line.trim() != "q" => {}
            _ => return false,
        }
    }
}

impl CpuThread for BreadcrumbThread {
    fn written(&mut self, breadcrumb: u32) -> Onward {
        let arrival = self.gate.arrive(breadcrumb);
        if arrival.sent
            && let Err(e) = self.socket.send_to(&datagram(breadcrumb), self.to)
            && !std::mem::replace(&mut self.complained, true)
        {
            complain!("breadcrumbs cannot be sent to {}: {e}", self.to);
        }
        if arrival.stops && !self.ask(breadcrumb) { Onward::Leave } else { Onward::Go }
    }
}
