//! A line that is typed at the bottom of the screen. Never: what becomes of it.

use crate::event::Key;

/// Characters of a prompt.
const LONGEST: usize = 256;

/// What a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptPurpose {
    SearchForward,
    SearchBackward,
    Filter,
    Command,
}

impl PromptPurpose {
    pub(crate) fn sign(self) -> char {
        match self {
            PromptPurpose::SearchForward => '/',
            PromptPurpose::SearchBackward => '?',
            PromptPurpose::Filter => '&',
            PromptPurpose::Command => ':',
        }
    }
}

/// A prompt.
pub(crate) struct Prompt {
    pub(crate) purpose: PromptPurpose,
    pub(crate) text: String,
}

/// What a key did to a prompt.
pub(crate) enum PromptStep {
    Typing,
    Cancelled,
    Entered,
}

impl Prompt {
    pub(crate) fn new(purpose: PromptPurpose) -> Prompt {
        Prompt { purpose, text: String::new() }
    }

    pub(crate) fn key(&mut self, key: Key) -> PromptStep {
        match key {
            Key::Char(c) if self.text.chars().count() < LONGEST => self.text.push(c),
            Key::Backspace if self.text.is_empty() => return PromptStep::Cancelled,
            Key::Backspace => drop(self.text.pop()),
            Key::Control('u') => self.text.clear(),
            Key::Escape | Key::Control('c' | 'g') => return PromptStep::Cancelled,
            Key::Enter => return PromptStep::Entered,
            _ => {}
        }
        PromptStep::Typing
    }
}
