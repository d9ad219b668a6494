//! Trace points of RADV: how far the command processor came in the command buffers.
//!
//! A trace point stands behind each command, and its number is written as the command processor comes by: it has read
//! the command in front of it then, and not necessarily ended it.

use super::case::Case;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_capture::amdgpu::radv::{Reached, TracePacket, TraceStream};

/// How far it came.
pub(super) struct Progress<'c> {
    /// The newest number that was written.
    pub(super) id: u32,
    /// The stream in which it stopped.
    stream: Option<&'c TraceStream<'c>>,
    /// Indices in the stream: behind the last point that was reached, and the first that was not.
    between: (usize, usize),
    /// The next trace point.
    next: Option<u32>,
}

impl<'c> Progress<'c> {
    /// Reads it off the trace.
    pub(super) fn of(case: &Case<'c>) -> Option<Progress<'c>> {
        let trace = case.radv?.trace.as_ref()?;
        let id = trace.id?;
        let mut found = Progress { id, stream: None, between: (0, 0), next: None };
        for stream in &trace.streams {
            let points = stream.packets.iter().enumerate().filter_map(|(i, p)| Some((i, p.trace_point?)));
            let reached = |point: &(usize, unwedge_capture::amdgpu::radv::TracePoint)| match point.1.reached {
                Reached::Yes | Reached::Last => true,
                Reached::No => false,
                Reached::Unknown => point.1.id <= id,
            };
            let Some((first, next)) = points.clone().find(|point| !reached(point)) else {
                if let Some((last, _)) = points.clone().next_back() {
                    // All of its points were reached: it may have stopped behind them.
                    found = Progress {
                        stream: Some(stream),
                        between: (last + 1, stream.packets.len()),
                        next: None,
                        ..found
                    };
                }
                continue;
            };
            let start = points.take_while(reached).last().map_or(0, |(i, _)| i + 1);
            return Some(Progress {
                stream: Some(stream),
                between: (start, first),
                next: Some(next.id),
                ..found
            });
        }
        Some(found)
    }

    fn packets(&self) -> &'c [TracePacket<'c>] {
        self.stream.and_then(|stream| stream.packets.get(self.between.0..self.between.1)).unwrap_or_default()
    }

    /// The commands in between that start work or wait.
    fn commands(&self) -> impl Iterator<Item = &'c TracePacket<'c>> {
        self.packets().iter().filter(|p| is_command(&p.name))
    }

    /// The one it most likely stopped at.
    pub(super) fn packet(&self) -> Option<&'c TracePacket<'c>> {
        self.commands().next()
    }

    /// Where that is: `Main IB, dwords 0x4 to 0x10`.
    pub(super) fn place(&self) -> Option<String> {
        let stream = self.stream?;
        let packets = self.packets();
        let first = packets.first().and_then(|p| p.dword);
        let last = packets.last().and_then(|p| p.dword);
        Some(match first.zip(last) {
            Some((first, last)) => format!("{}, dwords {first:#x} to {last:#x}", stream.name),
            None => stream.name.clone().into_owned(),
        })
    }

    /// All that the report has of the command buffers was read.
    pub(super) fn finished(&self) -> bool {
        self.next.is_none()
    }
}

fn is_command(name: &str) -> bool {
    ["DRAW_", "DISPATCH_", "WAIT_REG_MEM", "DMA_DATA", "CP_DMA", "INDIRECT_BUFFER", "MEM_SEMAPHORE"]
        .iter()
        .any(|command| name.starts_with(command))
}

/// Findings about progress.
pub(super) fn findings(case: &Case<'_>, progress: Option<&Progress<'_>>) -> Vec<Finding> {
    let mut out = Vec::new();
    if let Some(progress) = progress {
        let names: Vec<&str> = progress.commands().map(|p| &*p.name).take(4).collect();
        let (title, why) = match progress.next {
            Some(next) => {
                let between =
                    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
                let title = format!(
                    "the command processor came past trace point {} and not to {next}{between}",
                    progress.id
                );
                (
                    title,
                    "what is in front of the point that was reached has been read, but may not have ended",
                )
            }
            None => (
                format!(
                    "the command processor came past every trace point, the last one being {}",
                    progress.id
                ),
                "all commands were read: one of them does not end, or what follows them waits",
            ),
        };
        let what = format!("Trace ID: {:#x}", progress.id);
        let mut evidence = vec![Evidence { section: "trace.log".to_owned(), what, iova: None, span: None }];
        evidence.extend(progress.place().map(|what| Evidence {
            section: "trace.log".to_owned(),
            what,
            iova: None,
            span: progress.packet().map(|packet| packet.span),
        }));
        out.push(Finding {
            kind: FindingKind::Progress,
            trust: Trust::Certain,
            title,
            why: why.to_owned(),
            evidence,
        });
    }
    out.extend(bad_addresses(case));
    out
}

/// Addresses in command buffers that Mesa found no buffer behind.
fn bad_addresses(case: &Case<'_>) -> Vec<Finding> {
    let trace = case.radv.and_then(|radv| radv.trace.as_ref());
    let packets = trace.into_iter().flat_map(|trace| &trace.streams).flat_map(|stream| &stream.packets);
    let bad = packets.flat_map(|packet| packet.bad_addresses.iter().map(move |bad| (packet, bad)));
    bad.take(4)
        .map(|(packet, bad)| Finding {
            kind: FindingKind::Suspect,
            trust: Trust::Likely,
            title: format!("{} in {} is {}: {:#x}", bad.name, packet.name, bad.problem, bad.address),
            why: "Mesa looked the address up in its list of buffers".to_owned(),
            evidence: vec![Evidence {
                section: "trace.log".to_owned(),
                what: format!("{} <- {:#x} {}", bad.name, bad.address, bad.problem),
                iova: Some(bad.address),
                span: Some(packet.span),
            }],
        })
        .collect()
}
