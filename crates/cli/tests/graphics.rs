//! Captures of programs that draw, replayed on the virtual Adreno: what is in memory afterwards against reference images and
//! against what the programs expect of their results.
//!
//! `UNWEDGE_ONLY=TEXT` runs those captures whose name has the text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unwedge_testkit::{data, parallel};

/// Captures of a hundred that meet all that is asked of them, at least.
const FLOOR: usize = 97;

/// A row of the index, by the name of its column.
type IndexRow = BTreeMap<String, String>;

fn index(folder: &Path) -> BTreeMap<String, Vec<IndexRow>> {
    let text = data::read_text(&folder.join("index.csv"));
    let mut lines = text.lines();
    let names = data::cells(lines.next().expect("a header"));
    let mut captures: BTreeMap<String, Vec<IndexRow>> = BTreeMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let row: IndexRow = names.iter().cloned().zip(data::cells(line)).collect();
        captures.entry(row["capture"].clone()).or_default().push(row);
    }
    captures
}

/// What a capture left in memory, by the number of the result.
type Results = BTreeMap<usize, Vec<u8>>;

/// The number of a result within its test: before the ending of its reference's name.
fn number(row: &IndexRow) -> usize {
    let expected = row["expected"].trim_end_matches(".gz").trim_end_matches(".bin");
    expected.rsplit('.').next().and_then(|number| number.parse().ok()).expect("a number in the name")
}

fn file_of(folder: &Path, row: &IndexRow) -> PathBuf {
    folder.join(format!("{}-{}.bin", row["after_set"], row["iova"]))
}

/// Replays a capture and takes the memory that its rows name.
fn replay(capture: &Path, rows: &[IndexRow], to: &Path) -> Results {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unwedge"));
    command.arg("replay").arg(capture).stdout(Stdio::null()).stderr(Stdio::piped());
    for row in rows {
        let file = file_of(to, row);
        let place = format!("{}@{}:{}", row["after_set"], row["iova"], row["size"]);
        command.arg("--dump-mem").arg(format!("{place}={}", file.display()));
    }
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}: {said}", capture.display());
    let of = |row: &IndexRow| Some((number(row), std::fs::read(file_of(to, row)).ok()?));
    rows.iter().filter_map(of).collect()
}

/// What a channel's bits are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unorm,
    Snorm,
    Srgb,
    Uint,
    Sint,
    Float,
    UnsignedFloat,
}

struct Channel {
    name: char,
    shift: usize,
    bits: usize,
    kind: Kind,
}

/// The channels of a format by its Vulkan name, and the bits of a texel.
fn channels(format: &str) -> (Vec<Channel>, usize) {
    if matches!(format, "D24_UNORM_S8_UINT" | "X8_D24_UNORM_PACK32") {
        return (vec![Channel { name: 'D', shift: 0, bits: 24, kind: Kind::Unorm }], 32);
    }
    let mut parts = format.split('_');
    let first = parts.next().unwrap_or_default();
    let kind = match parts.next().unwrap_or("UINT") {
        "UNORM" => Kind::Unorm,
        "SNORM" => Kind::Snorm,
        "SRGB" => Kind::Srgb,
        "SINT" | "SSCALED" => Kind::Sint,
        "SFLOAT" => Kind::Float,
        "UFLOAT" => Kind::UnsignedFloat,
        _ => Kind::Uint,
    };
    let mut sizes: Vec<(char, usize)> = Vec::new();
    for letter in first.chars() {
        match (letter.to_digit(10), sizes.last_mut()) {
            (Some(digit), Some(last)) => last.1 = 10 * last.1 + digit as usize,
            _ => sizes.push((letter, 0)),
        }
    }
    if format.contains("PACK") {
        sizes.reverse();
    }
    let mut shift = 0;
    let channels = sizes.into_iter().map(|(name, bits)| {
        shift += bits;
        let kind = if kind == Kind::Srgb && name == 'A' { Kind::Unorm } else { kind };
        Channel { name, shift: shift - bits, bits, kind }
    });
    (channels.collect(), shift)
}

fn unsigned_float(bits: u64, mantissa: usize) -> f64 {
    let (exponent, fraction) = ((bits >> mantissa) as i32, (bits & ((1 << mantissa) - 1)) as f64);
    let part = fraction / f64::from(1u32 << mantissa);
    match exponent {
        31 => f64::INFINITY,
        0 => part * 2f64.powi(-14),
        _ => (1.0 + part) * 2f64.powi(exponent - 15),
    }
}

fn half(bits: u64) -> f64 {
    let sign = if bits >> 15 & 1 != 0 { -1.0 } else { 1.0 };
    match bits & 0x7fff {
        magnitude @ 0x7c01.. => magnitude as f64 * f64::NAN,
        magnitude => sign * unsigned_float(magnitude, 10),
    }
}

/// A channel of a texel: as the tolerance of references counts it, in steps or relative to the value, and as a number.
struct Value {
    steps: f64,
    /// Steps are relative.
    float: bool,
    number: f64,
}

fn value(texel: &[u8], channel: &Channel) -> Value {
    let whole = texel.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
    let bits = (whole >> channel.shift) as u64 & (u64::MAX >> (64 - channel.bits.clamp(1, 64)));
    let most = (u64::MAX >> (64 - channel.bits)) as f64;
    let signed = (bits << (64 - channel.bits)) as i64 >> (64 - channel.bits);
    let integer = |steps: f64, number: f64| Value { steps, float: false, number };
    let float = |number: f64| Value { steps: number, float: true, number };
    match channel.kind {
        Kind::Float => float(match channel.bits {
            16 => half(bits),
            32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }),
        Kind::UnsignedFloat => float(unsigned_float(bits, channel.bits - 5)),
        Kind::Sint => integer(signed as f64, signed as f64),
        Kind::Snorm => integer(signed as f64, signed as f64 / (most / 2.0).floor()),
        Kind::Uint => integer(bits as f64, bits as f64),
        Kind::Unorm => integer(bits as f64, bits as f64 / most),
        Kind::Srgb => {
            let encoded = bits as f64 / most;
            let linear =
                if encoded <= 0.04045 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) };
            integer(bits as f64, linear)
        }
    }
}

/// How far apart two channels are, in units of the tolerance: steps, 1/1024 of a float, 1/65536 of a depth.
fn distance(channel: &Channel, here: &Value, there: &Value) -> f64 {
    let apart = (here.steps - there.steps).abs();
    let scale = match (here.float, channel.name) {
        (false, _) => 1.0,
        (true, 'D') => 65536.0,
        (true, _) if there.steps.is_finite() => 1024.0 / there.steps.abs().max(1.0),
        (true, _) => f64::INFINITY,
    };
    apart * scale
}

/// Whether a result is its reference within the tolerance of its row: that of a channel, and how many texels may go beyond.
fn meets_reference(row: &IndexRow, result: &[u8], reference: &[u8]) -> Result<(), String> {
    if result.len() != reference.len() {
        return Err(format!("{} bytes instead of {}", result.len(), reference.len()));
    }
    let tolerance: Vec<f64> =
        row["reference_tolerance"].split(':').map(|part| part.parse().expect("a number")).collect();
    let size: usize = row["element_bytes"].parse().expect("a number");
    let (channels, bits) = channels(&row["format"]);
    let mask = u128::from_str_radix(row["mask"].trim_start_matches("0x"), 16).unwrap_or(u128::MAX);
    let masked = |texel: &[u8]| -> Vec<u8> {
        texel.iter().zip(mask.to_le_bytes()).map(|(byte, mask)| byte & mask).collect()
    };
    let mut beyond = 0usize;
    let mut first = None;
    for (at, (here, there)) in result.chunks_exact(size).zip(reference.chunks_exact(size)).enumerate() {
        let (here, there) = (masked(here), masked(there));
        if here == there {
            continue;
        }
        let apart = bits != size * 8
            || channels.iter().any(|channel| {
                let (here, there) = (value(&here, channel), value(&there, channel));
                let same = here.steps == there.steps || here.steps.is_nan() && there.steps.is_nan();
                // Not a number is beyond any tolerance.
                let within = distance(channel, &here, &there) <= tolerance[0];
                !same && !within
            });
        if apart {
            beyond += 1;
            first = first.or(Some(at));
        }
    }
    let width: usize = row["width"].parse().expect("a number");
    match first {
        Some(at) if beyond as f64 > tolerance[1] => Err(format!(
            "{}: {beyond} of the elements differ by more than {} (at most {} may), the first at {},{}",
            row["name"],
            tolerance[0],
            tolerance[1],
            at % width.max(1),
            at / width.max(1)
        )),
        _ => Ok(()),
    }
}

/// Numbers of a list in what a test expects.
fn texts(value: &serde_json::Value, name: &str) -> Option<Vec<String>> {
    let list = value.get(name)?.as_array()?;
    Some(list.iter().filter_map(|text| text.as_str()).map(str::to_owned).collect())
}

fn is_close(value: f64, expected: f64, tolerance: &str) -> bool {
    match tolerance.strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.parse().expect("a number");
            (value - expected).abs() <= percent / 100.0 * expected.abs()
        }
        None => (value - expected).abs() <= tolerance.parse().expect("a number"),
    }
}

/// Whether the colours of an area are those expected.
fn meets_colours(parsed: &serde_json::Value, row: &IndexRow, result: &[u8]) -> Result<(), String> {
    let operation = parsed["op"].as_str().unwrap_or_default();
    let (channels, _) = channels(&row["format"]);
    let [width, height, size] =
        ["width", "height", "element_bytes"].map(|name| row[name].parse::<usize>().expect("a number"));
    let unit = if operation.starts_with("EQ") { 255.0 } else { 1.0 };
    let numbers = |name: &str| -> Option<Vec<f64>> {
        Some(texts(parsed, name)?.iter().map(|text| text.parse().expect("a number")).collect())
    };
    let expected = numbers("values").ok_or("no values")?;
    let mut tolerance = texts(parsed, "tolerance").unwrap_or_else(|| vec!["0.002".to_owned()]);
    let fill = if tolerance.len() == 1 { tolerance[0].clone() } else { "0.002".to_owned() };
    tolerance.resize(4, fill);
    let has_place = parsed.get("index").is_some();
    let scale = match parsed["relative"].as_bool() {
        Some(true) => [width as f64, height as f64],
        _ => [1.0; 2],
    };
    let index = numbers("index").unwrap_or(vec![0.0; 2]);
    let default = if has_place { [1.0; 2] } else { [width as f64, height as f64] };
    let area = numbers("size").unwrap_or(default.to_vec());
    let range = |axis: usize| {
        let first = (index[axis] * scale[axis]) as usize;
        first..(index[axis] * scale[axis] + area[axis] * scale[axis]) as usize
    };
    for y in range(1) {
        for x in range(0) {
            let at = (y * width + x) * size;
            let texel = result.get(at..at + size).ok_or("outside of the result")?;
            for channel in &channels {
                let Some(component) = "RGBA".find(channel.name).filter(|n| *n < expected.len()) else {
                    continue;
                };
                let number = value(texel, channel).number;
                if !is_close(number, expected[component] / unit, &tolerance[component]) {
                    return Err(format!("{x},{y} {}: {number}", channel.name));
                }
            }
        }
    }
    Ok(())
}

/// Whether the numbers from a byte on are those expected.
fn meets_numbers(parsed: &serde_json::Value, row: &IndexRow, result: &[u8]) -> Result<(), String> {
    let (channels, bits) = channels(&row["format"]);
    let from: usize = texts(parsed, "index").ok_or("no index")?[0].parse().expect("a number");
    let tolerance = texts(parsed, "tolerance").map_or("0.000001".to_owned(), |list| list[0].clone());
    let texels = result.get(from..).ok_or("outside of the result")?.chunks_exact(bits / 8);
    let found: Vec<f64> =
        texels.flat_map(|texel| channels.iter().map(|channel| value(texel, channel).steps)).collect();
    for (at, text) in texts(parsed, "values").ok_or("no values")?.iter().enumerate() {
        let expected = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("a number") as f64,
            None => text.parse().expect("a number"),
        };
        let number = *found.get(at).ok_or("outside of the result")?;
        if !is_close(number, expected, &tolerance) {
            return Err(format!("value {at}: {number} instead of {expected}"));
        }
    }
    Ok(())
}

/// The mean distance of the histograms of two images of bytes.
fn histogram_distance(here: &[u8], there: &[u8]) -> f64 {
    let of = |channel: usize| {
        let mut histogram = [0i64; 256];
        here.iter().skip(channel).step_by(4).for_each(|byte| histogram[usize::from(*byte)] += 1);
        there.iter().skip(channel).step_by(4).for_each(|byte| histogram[usize::from(*byte)] -= 1);
        let (mut sum, mut total) = (0i64, 0i64);
        for count in histogram {
            sum += count;
            total += sum.abs();
        }
        total as f64 / (here.len() as f64 / 4.0) / 256.0
    };
    (0..4).map(of).fold(0.0, f64::max)
}

fn meets_expectation(
    expectation: &serde_json::Value,
    rows: &BTreeMap<usize, &IndexRow>,
    results: &Results,
) -> Result<(), String> {
    let parsed = &expectation["parsed"];
    let named: Vec<usize> = expectation["results"]
        .as_array()
        .ok_or("no results")?
        .iter()
        .filter_map(|number| number.as_u64())
        .map(|number| number as usize)
        .collect();
    let (first, last) = (*named.first().ok_or("no result")?, *named.last().ok_or("no result")?);
    let row = rows.get(&first).ok_or("no row")?;
    let [here, there] = [first, last].map(|number| results.get(&number));
    let (here, there) = (here.ok_or("no result")?, there.ok_or("no result")?);
    match parsed["op"].as_str() {
        Some("EQ_RGBA" | "EQ_RGB" | "PROBE_RGBA" | "PROBE_RGB") => meets_colours(parsed, row, here),
        Some("EQ") => meets_numbers(parsed, row, here),
        Some("EQ_BUFFER") => {
            if here == there {
                Ok(())
            } else {
                Err("buffers differ".to_owned())
            }
        }
        Some("EQ_HISTOGRAM_EMD_BUFFER") => {
            let most: f64 = texts(parsed, "tolerance").ok_or("no tolerance")?[0].parse().expect("a number");
            let distance = histogram_distance(here, there);
            if distance <= most { Ok(()) } else { Err(format!("distance {distance}")) }
        }
        Some(other) => Err(format!("{other} cannot be judged")),
        // Only the reference is asked for.
        None => Ok(()),
    }
}

/// What a capture does not meet.
fn failures(folder: &Path, rows: &[IndexRow], results: &Results) -> Vec<String> {
    let mut failures = Vec::new();
    for row in rows {
        let reference = data::read(&folder.join("expected").join(&row["expected"]));
        let met = match results.get(&number(row)) {
            Some(result) => meets_reference(row, result, &reference),
            None => Err(format!("{}: no result", row["name"])),
        };
        failures.extend(met.err());
    }
    let text = data::read_text(&folder.join("expects").join(&rows[0]["expects"]));
    let expects: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let by_number: BTreeMap<usize, &IndexRow> = rows.iter().map(|row| (number(row), row)).collect();
    for expectation in expects["expects"].as_array().into_iter().flatten() {
        if let Err(why) = meets_expectation(expectation, &by_number, results) {
            failures.push(format!("{}: {why}", expectation["text"].as_str().unwrap_or_default()));
        }
    }
    failures
}

/// Every capture gives what its program expects and the reference image within its tolerance, but for the few that are told;
/// and what one GPU renders is the same in memory and in GMEM, with bins and without.
#[test]
fn captures_that_draw_give_their_images() {
    let Some(folder) = data::path("adreno/graphics") else { return };
    let only = std::env::var("UNWEDGE_ONLY").unwrap_or_default();
    let captures: Vec<(String, Vec<IndexRow>)> =
        index(&folder).into_iter().filter(|(name, _)| name.contains(&only)).collect();
    let scratch = std::env::temp_dir().join(format!("unwedge-graphics-{}", std::process::id()));
    let done = parallel::map(&captures, |(name, rows)| {
        let to = scratch.join(name);
        std::fs::create_dir_all(&to).expect("a folder for results");
        let results = replay(&folder.join("captures").join(name), rows, &to);
        let _ = std::fs::remove_dir_all(&to);
        (name.as_str(), (failures(&folder, rows, &results), results))
    });
    let _ = std::fs::remove_dir_all(&scratch);
    let done: BTreeMap<&str, (Vec<String>, Results)> = done.into_iter().collect();
    let met = done.values().filter(|(failures, _)| failures.is_empty()).count();
    for (name, (failures, _)) in done.iter().filter(|(_, (failures, _))| !failures.is_empty()) {
        println!("{name}: {}", failures.join("; "));
    }
    println!("{met} of {} captures", done.len());
    let mut images: BTreeMap<(&str, &str, &str), (&str, &[u8])> = BTreeMap::new();
    for (name, rows) in &captures {
        for row in rows {
            let Some(result) = done.get(name.as_str()).and_then(|(_, results)| results.get(&number(row)))
            else {
                continue;
            };
            let program = (row["test"].as_str(), row["chip"].as_str(), row["expected"].as_str());
            let (other, image) = *images.entry(program).or_insert((name, result));
            assert!(image == result.as_slice(), "{} of {name} is not that of {other}", row["name"]);
        }
    }
    assert!(100 * met >= FLOOR * done.len(), "{met} of {} captures", done.len());
}
