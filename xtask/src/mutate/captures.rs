//! Broken captures.

use super::judge::Judge;
use super::{FILES_SHARE, MAX_INPUT, WORKERS, pick};
use std::sync::Arc;
use unwedge::files::Input;
use unwedge_campaigns::captures as capture_views;
use unwedge_capture::rd::{RdReader, RdSectionKind, RdWriter, without_zeros};
use unwedge_testkit::{captures, pack};

/// The same of captures.
const CAPTURE_VIEWS_SHARE: usize = 9;
/// Bytes of captures that do one thing over and over that costs much.
const EXPENSIVE: usize = 400_000;
/// Bytes that bombs unpack to.
const BOMB: usize = 32 << 20;
/// Bytes of a FILE's buffer that are kept where it ends in zeros anyway; a large file is mostly that.
const KEPT_ZEROS: usize = 256;

/// Broken captures.
pub(super) struct Captures {
    synthetic: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
}

impl Captures {
    pub(super) fn new(files: Vec<Vec<u8>>) -> Captures {
        let files = files.iter().map(|file| without_needless_zeros(file)).collect();
        Captures { synthetic: captures::variety(), files }
    }

    /// Captures that cost much, of which the names hold `like`.
    pub(super) fn expenses(&mut self, worker: u64, like: &str, judge: &mut Judge) {
        let expensive = captures::expensive(EXPENSIVE).into_iter().filter(|(name, _)| name.contains(like));
        for (name, capture) in expensive.skip(worker as usize).step_by(WORKERS as usize) {
            println!("on {name}");
            let size = Size::of(&capture);
            let capture = Arc::from(capture);
            // What is compared with itself is read to its end.
            capture_views::ALL.iter().for_each(|words| judge.capture(&capture, &capture, words, size, &name));
        }
        let bombs = captures::bombs(BOMB).into_iter().filter(|(name, _)| name.contains(like));
        for (name, bomb) in bombs.skip(worker as usize).step_by(WORKERS as usize) {
            println!("on {name}");
            let size = Size { unpacked: BOMB, held: bomb.len() };
            let bomb = Arc::from(bomb);
            capture_views::ALL.iter().for_each(|words| judge.capture(&bomb, &bomb, words, size, name));
        }
    }

    pub(super) fn one(&mut self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, whole) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", file.clone()),
            _ if share % 4 == 1 || share % 4 == 2 => ("hostile", captures::hostile(seed)),
            _ => ("synthetic", pick(&self.synthetic, share).cloned().unwrap_or_default()),
        };
        let (what, broken) = match share % 8 {
            1 | 5 => (what.to_owned(), whole.clone()),
            6 | 7 => {
                let pack = pack::ALL[(share / 8) as usize % pack::ALL.len()];
                // What is inside is whole, or broken as well.
                let inside = if share % 16 < 8 { whole.clone() } else { captures::mutate(&whole, seed) };
                (format!("packed {what}"), captures::mutate_bytes(&pack(&inside), seed))
            }
            _ => (what.to_owned(), captures::mutate(&whole, seed)),
        };
        let size = Size::of(&broken);
        let (broken, whole) = (Arc::from(broken), Arc::from(whole));
        let views = capture_views::ALL.iter();
        for words in views.skip((share / 16) as usize % CAPTURE_VIEWS_SHARE).step_by(CAPTURE_VIEWS_SHARE) {
            judge.capture(&broken, &whole, words, size, &format!("seed {seed}, {what} capture"));
        }
    }
}

/// The same capture, whose buffers do not end in more than a few zeros.
pub(super) fn without_needless_zeros(capture: &[u8]) -> Vec<u8> {
    let mut reader = RdReader::new(capture);
    let mut writer = RdWriter::new(Vec::new());
    while let Some(section) = reader.next() {
        let payload = match section.kind {
            RdSectionKind::BufferContents => {
                let kept = (without_zeros(section.payload).len() + KEPT_ZEROS).next_multiple_of(4);
                section.payload.get(..kept).unwrap_or(section.payload)
            }
            _ => section.payload,
        };
        // Memory takes everything.
        let _ = writer.section(section.kind, payload);
    }
    writer.into_inner()
}

/// How large an input is, for its limits.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// For time and output.
    pub(super) unpacked: usize,
    /// For the heap.
    pub(super) held: usize,
}

impl Size {
    pub(super) fn of(bytes: &[u8]) -> Size {
        let input = Input::read(bytes, "capture".to_owned(), bytes.len() as u64, MAX_INPUT);
        let unpacked = input.map_or(0, |input| input.bytes.len()).max(bytes.len());
        Size { unpacked, held: unpacked }
    }
}
