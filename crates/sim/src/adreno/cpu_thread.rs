//! A thread of the CPU that runs beside the GPU: it polls a dword of memory that the GPU writes, and acknowledges each value in another one.
//!
//! It polls after every packet, so that it sees each value. Never: what the values mean.

use super::machine::AdrenoMachine;
use super::watch::Onward;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A thread of the CPU.
pub trait CpuThread: Send {
    /// The GPU has written another value. The value is acknowledged if this returns [`Onward::Go`].
    fn written(&mut self, value: u32) -> Onward;
}

/// A thread of the CPU that the caller of a replay keeps a reference to.
pub type SharedCpuThread = Arc<Mutex<dyn CpuThread>>;

/// Two dwords of memory by which the GPU waits for the CPU.
#[derive(Clone)]
pub struct Handshake {
    /// The address of the dword that the GPU writes.
    pub gpu: u64,
    /// The address of the dword that the CPU writes.
    pub cpu: u64,
    /// The last value that the CPU has seen.
    pub seen: u32,
    /// The thread that acknowledges.
    pub thread: SharedCpuThread,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handshake({:#x}, {:#x}, {})", self.gpu, self.cpu, self.seen)
    }
}

impl AdrenoMachine<'_> {
    /// Lets a thread of the CPU run beside the GPU.
    pub fn run_cpu_thread(&mut self, handshake: Option<Handshake>) {
        self.handshake = handshake;
    }

    /// Whether one runs.
    pub fn handshake(&self) -> Option<&Handshake> {
        self.handshake.as_ref()
    }

    /// Lets the thread of the CPU look at what the GPU has written.
    pub(crate) fn let_cpu_answer(&mut self) -> Onward {
        let Some(handshake) = &mut self.handshake else { return Onward::Go };
        let value = self.space.memory.load(handshake.gpu, 4).known().map(|value| value as u32);
        let Some(value) = value.filter(|value| *value != handshake.seen) else { return Onward::Go };
        handshake.seen = value;
        let onward = handshake.thread.lock().unwrap_or_else(PoisonError::into_inner).written(value);
        if onward == Onward::Go {
            self.space.memory.store(handshake.cpu, 4, value.into());
        }
        onward
    }
}
