//! Breadcrumbs of instrumented captures: a thread of the CPU acknowledges them, as a driver's does.

use std::sync::{Arc, Mutex};
use unwedge_base::Memory;
use unwedge_edit::breadcrumbs::Mailbox;
use unwedge_sim::adreno::{AdrenoMachine, CpuThread, Handshake, Onward, SharedCpuThread};

/// A thread that lets the GPU go on at every breadcrumb.
struct GoOn;

impl CpuThread for GoOn {
    fn written(&mut self, _: u32) -> Onward {
        Onward::Go
    }
}

/// Starts the thread of the CPU when a capture has breadcrumbs; once.
pub(super) fn start(machine: &mut AdrenoMachine<'_>, memory: &Memory, thread: Option<&SharedCpuThread>) {
    if machine.handshake().is_some() {
        return;
    }
    if let Some(mailbox) = Mailbox::find(memory) {
        let thread = thread.cloned().unwrap_or_else(|| Arc::new(Mutex::new(GoOn)));
        let handshake = Handshake { gpu: mailbox.gpu(), cpu: mailbox.cpu(), seen: 0, thread };
        machine.run_cpu_thread(Some(handshake));
    }
}
