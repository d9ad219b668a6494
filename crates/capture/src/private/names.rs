//! Pseudonyms of private texts, numbered in the order in which the texts come up.

use std::collections::BTreeMap;

/// A kind of private text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrivateKind {
    /// The name of a process or program.
    Process,
    /// A command line, or the path of a program.
    Command,
    /// The name of a user, as in the path of a home folder.
    User,
    /// The name of a machine.
    Host,
    /// A MAC or IP address.
    Network,
    /// A serial number or UUID.
    Serial,
    /// `user@host`.
    Account,
    /// The name of a wireless network.
    Ssid,
    /// What a device calls itself, which its owner may have named: `Ada's Phone`.
    Device,
    /// A file or folder in a record of the audit.
    Path,
}

impl PrivateKind {
    /// Every kind.
    pub const ALL: [PrivateKind; 10] = [
        PrivateKind::Process,
        PrivateKind::Command,
        PrivateKind::User,
        PrivateKind::Host,
        PrivateKind::Network,
        PrivateKind::Serial,
        PrivateKind::Account,
        PrivateKind::Ssid,
        PrivateKind::Device,
        PrivateKind::Path,
    ];

    /// What pseudonyms of it begin with.
    pub fn word(self) -> &'static str {
        match self {
            PrivateKind::Process => "process",
            PrivateKind::Command => "command",
            PrivateKind::User => "user",
            PrivateKind::Host => "host",
            PrivateKind::Network => "address",
            PrivateKind::Serial => "serial",
            PrivateKind::Account => "account",
            PrivateKind::Ssid => "ssid",
            PrivateKind::Device => "device",
            PrivateKind::Path => "path",
        }
    }
}

/// A private text and its pseudonym.
#[derive(Clone, Copy, Debug)]
pub struct Pseudonym<'p> {
    /// What it is.
    pub kind: PrivateKind,
    /// The text itself.
    pub text: &'p [u8],
    /// Its number among those of its kind, from 1.
    pub number: usize,
    /// How often it was replaced.
    pub times: u64,
}

/// The pseudonyms of one or several files.
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    by_text: BTreeMap<(PrivateKind, Vec<u8>), (usize, u64)>,
    counts: BTreeMap<PrivateKind, usize>,
    /// Names that are replaced wherever they are a word of their own, in the order of their bytes.
    words: Vec<(Vec<u8>, PrivateKind)>,
    fields_only: bool,
}

/// Texts that are kept. More names are replaced by the word of their kind alone.
const MAX_NAMES: usize = 4096;
/// Characters of a name that is replaced everywhere. Shorter ones are words of the formats, too.
const MIN_WORD: usize = 4;
/// Bytes of one; nor is the name of a file longer. What takes long to compare is replaced in its field only.
const MAX_WORD: usize = 255;
/// Bytes of the name that the kernel keeps of a program.
const COMM: usize = 15;

impl Pseudonyms {
    /// The pseudonym of a text, to be written in its place.
    pub fn of(&mut self, kind: PrivateKind, text: &[u8]) -> String {
        self.learn(kind, text);
        let word = kind.word();
        match self.by_text.get_mut(&(kind, text.to_vec())) {
            Some((number, times)) => {
                *times += 1;
                format!("{word}-{number}")
            }
            None => word.to_owned(),
        }
    }

    /// Makes a text known.
    pub(super) fn learn(&mut self, kind: PrivateKind, text: &[u8]) {
        let key = (kind, text.to_vec());
        if self.by_text.len() >= MAX_NAMES || self.by_text.contains_key(&key) {
            return;
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let number = *count;
        self.by_text.insert(key, (number, 0));
        if matches!(kind, PrivateKind::Process | PrivateKind::Host | PrivateKind::User) {
            self.add_word(kind, text);
        }
        if kind == PrivateKind::User {
            // As devices are named: `Ada's Phone`.
            let mut upper = text.to_vec();
            upper.iter_mut().take(1).for_each(|c| c.make_ascii_uppercase());
            self.add_word(kind, &upper);
        }
        if kind == PrivateKind::Command {
            self.learn_command(text);
        }
    }

    /// The program of a command line is a name of a process, which the kernel cuts.
    fn learn_command(&mut self, text: &[u8]) {
        let program = text.split(|&c| c == b' ' || c == 0).next().unwrap_or_default();
        let base = program.rsplit(|&c| c == b'/' || c == b'\\').next().unwrap_or_default();
        self.add_word(PrivateKind::Process, base);
        self.add_word(PrivateKind::Process, base.get(..COMM).unwrap_or_default());
    }

    fn add_word(&mut self, kind: PrivateKind, text: &[u8]) {
        if !(MIN_WORD..=MAX_WORD).contains(&text.len()) || self.words.len() >= MAX_NAMES {
            return;
        }
        if let Err(at) = self.words.binary_search_by(|(word, _)| word.as_slice().cmp(text)) {
            self.words.insert(at, (text.to_vec(), kind));
        }
    }

    /// Replaces names only where a field or message says that it is one, and not wherever they are a word of their own: a
    /// process may have the name of a register.
    pub fn in_fields_only(&mut self, only: bool) {
        self.fields_only = only;
    }

    /// The longest name that a text begins with and that ends there as a word, with its length. The time that takes does not depend on
    /// how many names there are.
    pub(super) fn word_at(&self, text: &[u8]) -> Option<(PrivateKind, usize)> {
        let mut longest = None;
        // Those that have the first `depth` bytes of the text. One that has no more of them is the first.
        let (mut alike, mut depth) = (self.words.as_slice(), 0);
        if self.fields_only {
            return None;
        }
        loop {
            if let Some(((word, kind), longer)) =
                alike.split_first().filter(|((word, _), _)| word.len() == depth)
            {
                if is_apart(text.get(depth)) {
                    longest = Some((*kind, word.len()));
                }
                alike = longer;
            }
            let (Some(&next), Some((first, _)), Some((last, _))) =
                (text.get(depth), alike.first(), alike.last())
            else {
                return longest;
            };
            if first[depth] != next || last[depth] != next {
                let begin = alike.partition_point(|(word, _)| word[depth] < next);
                let count = alike[begin..].partition_point(|(word, _)| word[depth] == next);
                alike = &alike[begin..begin + count];
            }
            depth += 1;
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Pseudonym<'_>> {
        self.by_text.iter().map(|((kind, text), &(number, times))| Pseudonym {
            kind: *kind,
            text,
            number,
            times,
        })
    }
}

/// Whether a word ends before a byte, or begins after it.
pub(super) fn is_apart(byte: Option<&u8>) -> bool {
    byte.is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_pseudonym_for_each_kind() {
        let mut names = Pseudonyms::default();
        assert_eq!(names.of(PrivateKind::Process, b"game"), "process-1");
        assert_eq!(names.of(PrivateKind::Process, b"shell"), "process-2");
        assert_eq!(names.of(PrivateKind::Process, b"game"), "process-1");
        assert_eq!(names.of(PrivateKind::Host, b"game"), "host-1");
        let game = names.iter().find(|name| name.text == b"game").expect("the name");
        assert_eq!((game.number, game.times), (1, 2));
    }

    #[test]
    fn the_program_of_a_command_line_is_a_word() {
        let mut names = Pseudonyms::default();
        names.of(PrivateKind::Command, b"/usr/bin/long-program-name --level 3");
        let words: Vec<&[u8]> = names.words.iter().map(|(word, _)| word.as_slice()).collect();
        assert_eq!(words, [&b"long-program-na"[..], b"long-program-name"]);
    }

    #[test]
    fn the_longest_name_that_ends_as_a_word() {
        let mut names = Pseudonyms::default();
        for name in ["game", "game server", "gamer", "gate", "zebra", &"long".repeat(64)] {
            names.learn(PrivateKind::Process, name.as_bytes());
        }
        names.learn(PrivateKind::User, b"gate");
        for (text, length) in [
            ("game", Some(4)),
            ("game.", Some(4)),
            ("game server: 1", Some(11)),
            ("game servers", Some(4)),
            ("gamer", Some(5)),
            ("gamers", None),
            ("gam", None),
            ("gate 1", Some(4)),
            ("zebra", Some(5)),
            ("", None),
            ("a", None),
            (&"long".repeat(64), None),
        ] {
            let expected = length.map(|length| (PrivateKind::Process, length));
            assert_eq!(names.word_at(text.as_bytes()), expected, "{text}");
        }
        // As a device is named after a user.
        assert_eq!(names.word_at(b"Gate's"), Some((PrivateKind::User, 4)));
        names.in_fields_only(true);
        assert_eq!(names.word_at(b"game"), None);
    }

    #[test]
    fn pseudonyms_are_bounded() {
        let mut names = Pseudonyms::default();
        for n in 0..2 * MAX_NAMES {
            names.of(PrivateKind::Serial, n.to_string().as_bytes());
        }
        assert_eq!(names.iter().count(), MAX_NAMES);
        assert_eq!(names.of(PrivateKind::Serial, b"another"), "serial");
    }
}
