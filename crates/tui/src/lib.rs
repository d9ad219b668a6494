//! The terminal browser: state, keys, layout and drawing.
//!
//! An [`App`] takes [`Event`]s as data and draws to any backend of ratatui. Lines are made for the screen alone; what a stream, a buffer
//! or a shader holds is asked of the [`Document`](unwedge_view::browse::Document) when it is opened. Never: opens files, reads a
//! terminal, decodes.

mod app;
mod draw;
mod event;
mod goto;
mod help;
mod keys;
mod lines;
mod pane;
mod prompt;

pub use app::{App, Differences, View};
pub use draw::Theme;
pub use event::{Event, Key, Reaction};
