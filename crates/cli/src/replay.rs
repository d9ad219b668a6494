//! `unwedge replay`: executes a capture on the virtual Adreno. Never: two readers of standard input.

use crate::args::{DeviceArg, Global, MemoryArg, Replay};
use crate::breadcrumbs::{self, BreadcrumbThread};
use crate::database;
use crate::dump;
use crate::edit::CaptureFile;
use crate::failure::{Failure, Outcome, complain};
use crate::generator;
use crate::output::Output;
use crate::packed::Packed;
use crate::pictures::FrameFiles;
use crate::progress::Progress;
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use unwedge::base::Diagnostic;
use unwedge::device::{self, Driver, SubmitDevice};
use unwedge::files::InputStream;
use unwedge::sim::adreno::{Loading, SharedCpuThread};
use unwedge::stream::play::SubmitChoice;
use unwedge_view::CaptureStream;
use unwedge_view::replay::{
    self, FramePicture, Onlooker, PacketTrace, Replacement, ReplayOptions, ReplayParts, Replayed, Stepper,
};

/// Runs the command.
pub fn run(args: &Replay, global: &Global) -> Result<Outcome, Failure> {
    let device = open_device(args)?;
    check(args, device.is_some())?;
    let mut frames = FrameFiles::new(args.frames.as_deref())?;
    check_outputs(args)?;
    let db = database::load(global)?;
    let instrumented = match &args.breadcrumbs {
        Some(_) if device.is_none() => {
            let capture = CaptureFile::new(&args.file, global.max_size)?;
            breadcrumbs::instrument(&args.file.display().to_string(), &capture, &db, global)?
        }
        _ => None,
    };
    let stream = dump::open_capture(instrumented.as_ref().map_or(&args.file, |capture| &capture.file))?;
    let name = match &instrumented {
        Some(_) => args.file.display().to_string(),
        None => stream.name.clone(),
    };
    let other = args.compare.as_ref().map(|other| dump::open_capture(other)).transpose()?;
    let asks = args.step.is_some();
    let mut source = progress(stream, asks || args.trace.is_some() || args.breadcrumbs.is_some());
    let mut out = Output::open(global, !args.json && !asks);
    let style = out.style;
    if !args.json {
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = writeln!(out, "{}", style.bold(&name));
    }
    let mut open = |free: Range<u64>| generator::open(args.generator.as_deref(), &free, &db, global);
    let replacement = args.overridden.map(|submit| Replacement::new(submit, args.address, &mut open));
    // Not locked: the capture may come from there.
    let mut commands = BufReader::new(io::stdin());
    let onlooker = match (&args.trace, args.step) {
        (_, Some(unit)) => Some(Onlooker::Step(Stepper::new(unit.into(), &mut commands, &mut out))),
        (Some(submits), _) => {
            let (submits, json) = (submits.clone(), args.json);
            Some(Onlooker::Trace(PacketTrace { submits, json, style, out: &mut out }))
        }
        _ => None,
    };
    let mut take = |frame| frames.write(frame);
    let frames_of = args.frames.as_ref().map(|_| &mut take as &mut dyn FnMut(FramePicture));
    let breadcrumbs = args.breadcrumbs.filter(|_| device.is_none());
    let cpu = breadcrumbs.map(|target| BreadcrumbThread::new(args, target)).transpose()?;
    let cpu = cpu.map(|thread| Arc::new(Mutex::new(thread)) as SharedCpuThread);
    let mut parts = ReplayParts { replacement, onlooker, cpu, frames: frames_of };
    let options = options(args);
    let (replayed, mut diagnostics, lost_of_other) = match (other, device) {
        (_, Some((mut device, driver))) => {
            let replacement = parts.replacement.take();
            let device = device.as_mut();
            let (replayed, lost) = replay::replay_on(
                device,
                driver.name(),
                &mut source,
                &options,
                replacement,
                &db,
                global.max_size,
            );
            (replayed, lost, Outcome::Complete)
        }
        (None, None) => {
            let (replayed, lost) =
                replay::replay_with(&mut source, &options, &mut parts, &db, global.max_size);
            (replayed, lost, Outcome::Complete)
        }
        (Some(other), None) => {
            let other_name = other.name.clone();
            let mut other = progress(other, false);
            let sources: [&mut dyn Read; 2] = [&mut source, &mut other];
            let (replayed, [lost, mut of_other]) =
                replay::replay_both(sources, &other_name, &options, &mut parts, &db, global.max_size);
            of_other.splice(0..0, other.source().diagnostics());
            (replayed, lost, Outcome::of(&other_name, &of_other))
        }
    };
    diagnostics.splice(0..0, source.source().diagnostics());
    if replayed.submits() == 0 && diagnostics.is_empty() {
        let chosen = args.first > 0 || args.last.is_some() || args.exe.is_some();
        let why =
            if chosen { "no submit is chosen by --first, --last and --exe" } else { "it has no submits" };
        return Err(Failure::NotFound(format!("{name}: {why}")));
    }
    if let Some(submits) = args.trace.as_ref().filter(|submits| !replayed.has_submit_of(submits)) {
        let message =
            format!("--trace: none of the submits {}..{} was executed", submits.start(), submits.end());
        diagnostics.push(Diagnostic::loss(None, message));
    }
    diagnostics.extend(frames.finish()?);
    replayed.picture_remarks.iter().for_each(|remark| complain!("{name}: {remark}"));
    if replayed.traced_fibers() == Some(0) {
        diagnostics.push(Diagnostic::loss(None, "--trace-fiber: no such fiber was executed"));
    }
    let written = write_files(args, &replayed, &mut diagnostics);
    // As above.
    let _ = replayed.write_fibers(args.json, &mut out);
    // As above.
    let _ = if args.json {
        replayed.json(&name, db.identity(), &mut out)
    } else {
        replayed.text(style, &mut out)
    };
    out.finish()?;
    written?;
    Ok(match (Outcome::of(&name, &diagnostics), lost_of_other) {
        (Outcome::Complete, Outcome::Complete) if !replayed.is_clean() => Outcome::Found,
        (Outcome::Complete, outcome) => outcome,
        (outcome, _) => outcome,
    })
}

/// A GPU that submits go to, and whose driver takes them.
type OpenDevice = (Box<dyn SubmitDevice>, Driver);

/// The GPU that is asked for; `None`: the virtual one.
fn open_device(args: &Replay) -> Result<Option<OpenDevice>, Failure> {
    let driver = match args.device {
        DeviceArg::Sim => return Ok(None),
        DeviceArg::Auto if args.only_virtual().is_some() => return Ok(None),
        DeviceArg::Auto => {
            let mut opened = [Driver::Msm, Driver::Kgsl].into_iter();
            return Ok(opened.find_map(|driver| Some((device::open(driver).ok()?, driver))));
        }
        DeviceArg::Msm => Driver::Msm,
        DeviceArg::Kgsl => Driver::Kgsl,
    };
    if let Some(option) = args.only_virtual() {
        return Err(Failure::Usage(format!("{option} is for the virtual Adreno: --device sim")));
    }
    match device::open(driver) {
        Ok(device) => Ok(Some((device, driver))),
        Err(error) => Err(Failure::Unusable(error.to_string())),
    }
}

/// Refuses options that contradict one another, before anything is opened.
fn check(args: &Replay, on_device: bool) -> Result<(), Failure> {
    let input = |file: &Path| file.as_os_str() == "-";
    if args.step.is_some() && input(&args.file) {
        return Err(Failure::Usage("--step reads commands from standard input: name the capture".to_owned()));
    }
    if args.compare.as_deref().is_some_and(input) && input(&args.file) {
        return Err(Failure::Usage("only one of the two captures can be standard input".to_owned()));
    }
    if args.breadcrumbs.is_some() && input(&args.file) && !on_device {
        let message = "breadcrumbs are acknowledged on standard input, so the capture has to be a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let last = args.last.unwrap_or(u32::MAX);
    if args.first > last {
        return Err(Failure::Usage(format!("--first {} is after --last {last}", args.first)));
    }
    if let Some(submit) = args.overridden.filter(|submit| !(args.first..=last).contains(submit)) {
        return Err(Failure::Usage(format!("--override {submit} is outside of --first and --last")));
    }
    Ok(())
}

/// Refuses files that cannot be written, before anything is replayed. The folder of `--frames` must exist: some of them may be in it.
fn check_outputs(args: &Replay) -> Result<(), Failure> {
    let mut places = Vec::new();
    for file in outputs(args) {
        if file.as_os_str() == "-" {
            return Err(Failure::Usage("standard output has the report: name a file".to_owned()));
        }
        let place = place(file).map_err(|e| Failure::Write(file.display().to_string(), e))?;
        if places.contains(&place) && !fs::metadata(&place).is_ok_and(|meta| !meta.is_file()) {
            return Err(Failure::Usage(format!("{} is to be written twice", file.display())));
        }
        places.push(place);
    }
    Ok(())
}

/// The files that are to be written.
fn outputs(args: &Replay) -> impl Iterator<Item = &PathBuf> {
    let memory = args.dump_mem.iter().map(|dump| &dump.file);
    memory
        .chain(args.image.iter().map(|image| &image.file))
        .chain(&args.overdraw)
        .chain(&args.wireframe)
        .chain(&args.devcoredump)
        .chain(&args.hangrd)
}

/// Where a file is, or will be; by whatever path it is named, this is the same.
fn place(file: &Path) -> io::Result<PathBuf> {
    if let Ok(place) = file.canonicalize() {
        return Ok(place);
    }
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(folder.canonicalize()?.join(name))
}

/// A capture, of which is shown how much is replayed.
fn progress(stream: InputStream, silent: bool) -> Progress<InputStream> {
    let what = format!("replaying {}", stream.name);
    let progress = Progress::new(stream, what);
    if silent { progress.silent() } else { progress }
}

/// Writes what was asked for to its files, and takes down what there is not.
fn write_files(args: &Replay, replayed: &Replayed, diagnostics: &mut Vec<Diagnostic>) -> Result<(), Failure> {
    for (dump, bytes) in args.dump_mem.iter().zip(&replayed.memory) {
        match bytes {
            Some(bytes) => write_output(&dump.file, bytes, args)?,
            None => diagnostics.push(replayed.absent(&dump.wanted)),
        }
    }
    for (image, png) in args.image.iter().zip(&replayed.images) {
        match png {
            Ok(png) => write_output(&image.file, png, args)?,
            Err(why) => diagnostics.push(Diagnostic::loss(None, why.clone())),
        }
    }
    let views = [
        (&args.overdraw, Replayed::overdraw as fn(&Replayed) -> Result<Vec<u8>, String>),
        (&args.wireframe, Replayed::wireframe),
    ];
    for (file, view) in views.into_iter().filter_map(|(file, view)| Some((file.as_ref()?, view))) {
        match view(replayed) {
            Ok(png) => write_output(file, &png, args)?,
            Err(why) => diagnostics.push(Diagnostic::loss(None, format!("{}: {why}", file.display()))),
        }
    }
    let hang = replayed.hang.as_ref();
    let files = [
        (&args.devcoredump, hang.map(|hang| &hang.devcoredump)),
        (&args.hangrd, hang.map(|hang| &hang.hangrd)),
    ];
    for (file, bytes) in files.into_iter().filter_map(|(file, bytes)| Some((file.as_ref()?, bytes))) {
        match bytes {
            Some(bytes) => write_output(file, bytes, args)?,
            None => diagnostics.push(replay::no_hang(&file.to_string_lossy())),
        }
    }
    Ok(())
}

fn options(args: &Replay) -> ReplayOptions {
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let submits = number(args.first)..=args.last.map_or(i32::MAX, number);
    ReplayOptions {
        choice: SubmitChoice { submits, exe: args.exe.clone(), compositors: true, one_gpu: false },
        loading: match args.memory {
            None | Some(MemoryArg::Delta) => Loading::Delta,
            Some(MemoryArg::Snapshot) => Loading::Snapshot,
        },
        compare_snapshots: args.compare_snapshots,
        steps: args.max_steps.unwrap_or(ReplayOptions::MAX_STEPS),
        hang_steps: args.hang_steps.unwrap_or(ReplayOptions::HANG_STEPS),
        images: args.image.iter().map(|image| image.wanted).collect(),
        coverage: (args.overdraw.is_some() || args.wireframe.is_some()).then(|| {
            let last = *args.draws.end();
            u64::from(*args.draws.start())..=if last == u32::MAX { u64::MAX } else { last.into() }
        }),
        fibers: args.trace_fiber,
        pixel: None,
        wanted: args.dump_mem.iter().map(|dump| dump.wanted).collect(),
        dump: args.devcoredump.is_some() || args.hangrd.is_some(),
        caches: args.caches,
        check_lrz: args.check_lrz,
    }
}

fn write_output(file: &Path, bytes: &[u8], args: &Replay) -> Result<(), Failure> {
    let mut inputs = vec![args.file.as_path()];
    inputs.extend(args.compare.as_deref());
    inputs.extend(args.generator.as_deref().map(Path::new));
    write(file, bytes, &inputs)
}

/// Writes a file that is made from inputs.
pub fn write(file: &Path, bytes: &[u8], inputs: &[&Path]) -> Result<(), Failure> {
    let mut packed = Packed::create(Some(file), None, inputs)?;
    packed.write_all(bytes).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    packed.commit()
}
