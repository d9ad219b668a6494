//! What an HSA runtime does before a kernel runs: lays its object out in memory, and sets up what the kernel finds.

mod launch;
mod link;

pub use launch::{LaunchError, LaunchOptions, LaunchWarning, MAX_KERNARG, descriptor_of, map, prepare};
pub use link::{LinkError, link};
