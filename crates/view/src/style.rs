//! How text for people may look.

use unwedge_postmortem::Trust;

/// How text for people may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Use escape sequences.
    pub colour: bool,
}

impl Style {
    /// Escape sequences for decoded registers and packets: names green, numbers yellow, errors bold red.
    pub fn palette(self) -> unwedge_hw::Palette {
        if !self.colour {
            return unwedge_hw::Palette::default();
        }
        unwedge_hw::Palette {
            reset: "\x1b[0m",
            name: "\x1b[0;32m",
            number: "\x1b[0;33m",
            value: "\x1b[0;35m",
            flag: "\x1b[0;36m",
            packet: "\x1b[1;34m",
            error: "\x1b[1;31m",
        }
    }

    /// `text` in bold, when there is colour.
    pub fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// `text` with the SGR parameters `code`, when there is colour and text.
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The word for a trust, in its colour.
    pub(crate) fn trust(self, trust: Trust) -> String {
        let code = match trust {
            Trust::Certain => "1;32",
            Trust::Likely => "32",
            Trust::Possible => "33",
            Trust::Guess => "2",
        };
        self.paint(code, trust.word())
    }
}
