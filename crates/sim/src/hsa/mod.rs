//! What an HSA runtime does before a kernel runs: puts its object into memory, and sets up what the kernel finds.

mod launch;

pub use launch::{LaunchError, LaunchOptions, LaunchWarning, MAX_KERNARG, map, prepare};
