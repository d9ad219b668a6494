//! Pictures in files: those of render passes, differences of two sides, and the history of a pixel.

use crate::args::{self, Global};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::replay::write;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use unwedge::base::Diagnostic;
use unwedge::files::InputStream;
use unwedge::hw::Db;
use unwedge_view::CaptureStream;
use unwedge_view::replay::{
    self, FramePicture, PictureDiff, Pictures, PixelWanted, ReplayOptions, ReplayParts, is_png,
};

/// Steps that a submit may take.
const STEPS: u64 = ReplayOptions::MAX_STEPS;

/// The files of the pictures of render passes.
pub struct FrameFiles {
    folder: PathBuf,
    failed: Option<Failure>,
    lost: Vec<Diagnostic>,
}

impl FrameFiles {
    /// In a folder, which is made where it is not there.
    pub fn new(folder: Option<&Path>) -> Result<FrameFiles, Failure> {
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|e| Failure::Write(folder.display().to_string(), e))?;
        }
        let folder = folder.map(Path::to_path_buf).unwrap_or_default();
        Ok(FrameFiles { folder, failed: None, lost: Vec::new() })
    }

    /// Writes a picture. What was there before is replaced, and reported.
    pub fn write(&mut self, frame: FramePicture) {
        let file = self.folder.join(format!("{}.png", frame.name));
        match frame.png {
            Ok(png) if self.failed.is_none() => {
                if file.exists() {
                    complain!("{}: an existing file is replaced", file.display());
                }
                self.failed = write(&file, &png, &[]).err();
            }
            Ok(_) => {}
            Err(why) => self.lost.push(Diagnostic::loss(None, why)),
        }
    }

    /// What was lost, if every file could be written.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Failure> {
        self.failed.map_or(Ok(self.lost), Err)
    }
}

/// `query --pixel`: replays a capture, and shows what happened to a pixel.
pub fn pixel([x, y]: [u32; 2], args: &args::Query, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut stream = dump::open_capture(&args.file)?;
    let name = stream.name.clone();
    let submits = args.submit.clone().unwrap_or(0..=u32::MAX);
    let wanted =
        PixelWanted { pixel: [x, y, args.layer], target: args.target.map(|target| target.0), submits };
    let mut options = ReplayOptions { pixel: Some(wanted.clone()), ..ReplayOptions::new(STEPS) };
    options.choice.exe.clone_from(&args.process);
    let mut parts = ReplayParts::default();
    let (replayed, mut diagnostics) =
        replay::replay_with(&mut stream, &options, &mut parts, &db, global.max_size);
    diagnostics.splice(0..0, stream.diagnostics());
    if let Some(why) = replayed.unfinished() {
        complain!("{name}: {why}");
    }
    let Some(history) = &replayed.pixel else {
        Outcome::of(&name, &diagnostics);
        return Err(Failure::NotFound(format!("{name}: no submit was replayed")));
    };
    if let Some(why) = history.not_there(&wanted) {
        Outcome::of(&name, &diagnostics);
        return Err(Failure::NotFound(format!("{name}: {why}")));
    }
    let mut out = Output::open(global, !args.json);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = match args.json {
        true => history.json(&name, db.identity(), &mut out),
        false => writeln!(out, "{}", out.style.bold(&name)).and_then(|()| history.text(&mut out)),
    };
    out.finish()?;
    Ok(match Outcome::of(&name, &diagnostics) {
        Outcome::Complete if !replayed.is_complete() => Outcome::Found,
        outcome => outcome,
    })
}

/// The pictures of a side: those of its render passes, or the PNG file that it is.
fn pictures(file: &Path, db: &Db, global: &Global) -> Result<(String, Pictures, Outcome), Failure> {
    let mut stream = InputStream::open(file)?;
    let name = stream.name.clone();
    if is_png(stream.peek(8)?) {
        let mut bytes = Vec::new();
        let read = stream.take(global.max_size).read_to_end(&mut bytes);
        read.map_err(|e| Failure::Unusable(format!("{name}: {e}")))?;
        return Ok((name, replay::one_picture(bytes), Outcome::Complete));
    }
    let mut stream = dump::check_capture(stream)?;
    let (pictures, mut diagnostics) =
        replay::pass_pictures(&mut stream, &ReplayOptions::new(STEPS), db, global.max_size);
    diagnostics.splice(0..0, stream.diagnostics());
    let outcome = Outcome::of(&name, &diagnostics);
    Ok((name, pictures, outcome))
}

/// `diff --images`: compares the pictures of two sides.
pub fn diff(args: &args::Diff, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let first = Path::new(&args.a);
    let (name_a, a, read_a) = pictures(first, &db, global)?;
    let (name_b, b, read_b) = pictures(Path::new(&args.b), &db, global)?;
    if replay::is_one_picture(&a) != replay::is_one_picture(&b) {
        return Err(Failure::Usage(format!("{name_a} and {name_b}: compare two captures or two PNG files")));
    }
    if a.is_empty() && b.is_empty() {
        return Err(Failure::NotFound("neither side has a picture".to_owned()));
    }
    let diffs = replay::compare_pictures(&a, &b);
    let mut out = Output::open(global, !args.json);
    let names = [name_a.as_str(), name_b.as_str()];
    // As above.
    let _ = match args.json {
        true => replay::picture_json(&diffs, names, db.identity(), &mut out),
        false => replay::picture_text(&diffs, names, out.style, &mut out),
    };
    out.finish()?;
    let shown = || diffs.iter().filter_map(|diff| Some((diff.name(), diff.picture.as_ref()?)));
    for (name, png) in shown().filter(|_| args.out.is_some()) {
        let file = args.out.clone().unwrap_or_default();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let of_many = file.with_file_name(format!("{stem}-{name}.png"));
        write(if shown().count() > 1 { &of_many } else { &file }, png, &[first, Path::new(&args.b)])?;
    }
    let lost = [read_a, read_b].contains(&Outcome::Lost) || diffs.iter().any(|diff| diff.error.is_some());
    Ok(match lost {
        true => Outcome::Lost,
        false if args.exit_code && diffs.iter().any(PictureDiff::differs) => Outcome::Found,
        false => Outcome::Complete,
    })
}
