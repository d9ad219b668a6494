//! Breadcrumbs: the GPU writes a number before and after each draw, dispatch and blit and waits until the CPU has seen it, so that the last
//! number is known even if nothing survives the hang.
//!
//! What instrumented captures hold ([`BreadcrumbEditor`]), which packet a number is of ([`BreadcrumbMap`]), the datagrams, when the CPU
//! asks before it goes on ([`Breakpoint`]), and what a listener makes of datagrams that are lost, doubled or late ([`BreadcrumbStats`]). Never: sockets, clocks.
//! Facts: the chapter on breadcrumbs in freedreno's documentation, and what Turnip does with TU_BREADCRUMBS.

mod buffer;
mod instrument;
mod protocol;
mod stats;

pub use buffer::Mailbox;
pub use instrument::{BreadcrumbEditor, BreadcrumbMap, BreadcrumbPacket, BreadcrumbSide};
pub use protocol::{
    Arrival, BreadcrumbTarget, BreakGate, Breakpoint, MalformedDatagram, datagram, read_datagram,
};
pub use stats::{BreadcrumbStats, Gap, Receipt};
