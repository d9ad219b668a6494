//! Trace points of RADV: how far the command processor came in the command buffers.
//!
//! A trace point stands behind each command, and its number is written as the command processor comes by: it has read
//! the command in front of it then, and not necessarily ended it.

use super::case::AmdCase;
use super::evidence::{evidence, field};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_capture::radv::{TracePacket, TraceProgress, TraceStream};

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
    pub(super) fn of(case: &AmdCase<'c>) -> Option<Progress<'c>> {
        let trace = case.radv?.trace.as_ref()?;
        let id = trace.id?;
        let mut found = Progress { id, stream: None, between: (0, 0), next: None };
        for stream in &trace.streams {
            let points = stream.packets.iter().enumerate().filter_map(|(i, p)| Some((i, p.trace_point?)));
            let reached = |point: &(usize, unwedge_capture::radv::TracePoint)| match point.1.reached {
                TraceProgress::Yes | TraceProgress::Last => true,
                TraceProgress::No => false,
                TraceProgress::Unknown => point.1.id <= id,
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

    /// Where that is: `stream`, and the dwords `first` and `last` where they are known.
    pub(super) fn place(&self) -> Option<Args> {
        let stream = self.stream?;
        let packets = self.packets();
        let first = packets.first().and_then(|p| p.dword);
        let range = first.zip(packets.last().and_then(|p| p.dword));
        let place = Args::new().with("stream", Arg::name(stream.name.clone().into_owned()));
        Some(match range {
            Some((first, last)) => place.with("first", Arg::Value(first)).with("last", Arg::Value(last)),
            None => place,
        })
    }

    /// The number as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        evidence("trace.log", field("Trace ID", Arg::Value(self.id.into())))
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
pub(super) fn findings(case: &AmdCase<'_>, progress: Option<&Progress<'_>>) -> Vec<Finding> {
    let mut out: Vec<Finding> = progress.map(passed).into_iter().collect();
    out.extend(bad_addresses(case));
    out
}

/// Which trace points were passed.
fn passed(progress: &Progress<'_>) -> Finding {
    let rule = match progress.next {
        Some(_) => Rule::StoppedBetweenTracePoints,
        None => Rule::PassedEveryTracePoint,
    };
    let commands = progress.commands().map(|p| Arg::name(p.name.clone().into_owned()));
    let commands: Vec<Arg> = commands.take(4).collect();
    let place = progress.place().map(|place| Evidence {
        span: progress.packet().map(|packet| packet.span),
        ..evidence("trace.log", Fact::Record(place))
    });
    Finding::new(rule, Trust::Certain, Subject::Block("CP".into()))
        .with("trace_point", Arg::Number(progress.id.into()))
        .with_some("next_trace_point", progress.next.map(|next| Arg::Number(next.into())))
        .with("commands", commands)
        .seen([progress.evidence()])
        .seen(place)
}

/// Addresses in command buffers that are in no buffer that Mesa knows.
fn bad_addresses(case: &AmdCase<'_>) -> Vec<Finding> {
    let trace = case.radv.and_then(|radv| radv.trace.as_ref());
    let packets = trace.into_iter().flat_map(|trace| &trace.streams).flat_map(|stream| &stream.packets);
    let bad = packets.flat_map(|packet| packet.bad_addresses.iter().map(move |bad| (packet, bad)));
    bad.take(4)
        .map(|(packet, bad)| {
            let subject = Subject::Packet { name: Some(packet.name.clone().into_owned()), iova: None };
            let fact = Args::new()
                .with("field", Arg::name(bad.name.to_string()))
                .with("address", Arg::Address(bad.address))
                .with("problem", Arg::name(bad.problem.to_string()));
            let mut found = Finding::new(Rule::AddressWithoutBuffer, Trust::Likely, subject);
            found.args = fact.clone();
            let seen = evidence("trace.log", Fact::Record(fact));
            found.seen([Evidence { iova: Some(bad.address), span: Some(packet.span), ..seen }])
        })
        .collect()
}
