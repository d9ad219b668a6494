//! Captures of programs with a known picture, replayed on the virtual Adreno: the target that the GPU drew into against
//! the picture. Numbers that a program computes are compared too.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use unwedge_testkit::data;

/// A row of the index, by the name of its column.
type IndexRow = BTreeMap<String, String>;

fn index(folder: &Path) -> Vec<IndexRow> {
    let text = data::read_text(&folder.join("index.csv"));
    let mut lines = text.lines();
    let names = data::cells(lines.next().expect("a header"));
    let row = |line: &str| names.iter().cloned().zip(data::cells(line)).collect();
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

/// Replays a capture, and gives what it prints.
fn replay(capture: &Path, arguments: &[String]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unwedge"));
    let output = command.arg("replay").arg(capture).args(arguments).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", capture.display());
    output.stdout
}

/// The address of the last buffer that the GPU has changed: the one that was bound last, and is read by the CPU.
fn last_changed(capture: &Path) -> u64 {
    let report: serde_json::Value =
        serde_json::from_slice(&replay(capture, &["--json".to_owned()])).expect("JSON");
    let buffer = report["changed"].as_array().and_then(|all| all.last()).expect("a buffer that was changed");
    let text = buffer["iova"].as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
    u64::from_str_radix(text, 16).expect("an address")
}

fn memory(capture: &Path, iova: u64, size: usize) -> Vec<u8> {
    let name = capture.file_name().and_then(|name| name.to_str()).expect("a name");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.bin"));
    replay(capture, &["--dump-mem".to_owned(), format!("{iova:#x}:{size}={}", file.display())]);
    let bytes = std::fs::read(&file).expect("what was dumped");
    assert_eq!(bytes.len(), size, "{name}");
    bytes
}

/// The rows of an image of four bytes each, as a linear image of the driver has them.
fn picture(capture: &Path, width: usize, height: usize) -> Vec<u8> {
    let pitch = (4 * width).next_multiple_of(256);
    let bytes = memory(capture, last_changed(capture), pitch * height);
    bytes.chunks_exact(pitch).flat_map(|row| &row[..4 * width]).copied().collect()
}

fn png(file: &Path) -> (usize, usize, Vec<u8>) {
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).expect("a picture")));
    let mut reader = decoder.read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("its pixels");
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgba, png::BitDepth::Eight));
    pixels.truncate(info.buffer_size());
    (info.width as usize, info.height as usize, pixels)
}

/// Whether a picture of a render pass is the reference and has its size, also where GMEM stores more than the image.
fn has_frame(capture: &Path, (width, height): (usize, usize), reference: &[u8]) -> bool {
    let name = capture.file_name().and_then(|name| name.to_str()).expect("a name");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.frames"));
    let _ = std::fs::remove_dir_all(&folder);
    replay(capture, &["--frames".to_owned(), folder.display().to_string()]);
    let files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path());
    let is_it = |file: std::path::PathBuf| {
        let (frame_width, frame_height, pixels) = png(&file);
        (frame_width, frame_height) == (width, height) && pixels == reference
    };
    files.into_iter().any(is_it)
}

#[test]
fn replayed_captures_give_their_pictures() {
    let Some(folder) = data::path("adreno/renders") else { return };
    let (mut pictures, mut lists, mut wrong) = (0, 0, Vec::new());
    for row in index(&folder) {
        let capture = folder.join(&row["capture"]);
        let expected = folder.join(&row["expected_result"]);
        let [width, height] = ["width", "height"].map(|name| row[name].parse().expect("a number"));
        if row["kind"] == "f32" {
            let mut numbers = Vec::new();
            std::fs::File::open(&expected)
                .and_then(|mut file| file.read_to_end(&mut numbers))
                .expect("numbers");
            assert_eq!(numbers.len(), 4 * width * height);
            let differs = memory(&capture, last_changed(&capture), numbers.len()) != numbers;
            wrong.extend(differs.then(|| format!("{}: other numbers", row["capture"])));
            lists += 1;
            continue;
        }
        let (png_width, png_height, reference) = png(&expected);
        assert_eq!((png_width, png_height), (width, height), "{}", row["capture"]);
        let drawn = picture(&capture, width, height);
        let pixels = drawn.chunks_exact(4).zip(reference.chunks_exact(4));
        if !has_frame(&capture, (width, height), &reference) {
            wrong.push(format!("{}: no picture of a pass is the reference", row["capture"]));
        }
        let differ = pixels.filter(|(here, there)| here != there).count();
        println!("{}: {differ} of {} pixels differ", row["capture"], width * height);
        wrong.extend((differ != 0).then(|| format!("{}: {differ} pixels", row["capture"])));
        pictures += 1;
    }
    println!("{pictures} pictures, {lists} lists of numbers");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
